#pragma once

#include <string>
#include <vector>

#include "layers/cpu/simd/loops.h"
#include "runtime/kernel.h"
#include "tests/support/host_tensor.h"

// Helpers for the tests of our own CPU kernels.
namespace cnn::tests {

// Returns the loop tables that this process may run, see effective_isa().
std::vector<const layers::cpu::Loops*> runnable_loops();

// Returns a table of only our own kernels in one instruction set.
KernelTable own_kernels(const layers::cpu::Loops& loops);

// A variant of a kernel: instruction set, type and image layout.
struct Form {
  const layers::cpu::Loops* loops = nullptr;
  DataType type = DataType::f32;
  Layout layout = Layout::nhwc;
};
std::vector<Form> all_forms();  // the product loops x {f32, bf16} x {nhwc, nchw16c}
std::string name_of(const Form& form);

// Returns a row-major tensor of random values: reals in [-1, 1) rounded to the type, or integers in
// [0, 10) for i32 and u8.
HostTensor draws(Shape shape, DataType type, std::uint64_t seed);
HostTensor constant(Shape shape, float value);
// Returns the offset of channel c of pixel p of image n, in nhwc or nchw16c, in elements.
std::size_t place_in_image(const Shape& shape, Layout layout, std::int64_t n, std::int64_t c,
                           std::int64_t p);
// Returns plain f32 values as a row-major tensor of a floating-point type.
HostTensor in_type(DataType type, const HostTensor& values);

// Runs the op's kernel in this form and the reference loops on the same operands, whose images have
// the form's type. Expects equal results and fails if there is no kernel.
void expect_like_reference(const Op& op, const std::vector<const HostTensor*>& in, const Form& form,
                           double tolerance);

// Sets the number of OpenMP threads until the end of the scope.
class Threads {
 public:
  explicit Threads(int count);
  ~Threads();
  Threads(const Threads&) = delete;
  Threads& operator=(const Threads&) = delete;

 private:
  int before_;
};

}  // namespace cnn::tests
