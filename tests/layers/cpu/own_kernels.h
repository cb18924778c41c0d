#pragma once

#include <string>
#include <vector>

#include "layers/cpu/simd/loops.h"
#include "runtime/kernel.h"
#include "tests/support/host_tensor.h"

// Helpers that the tests of our own kernels share.
namespace cnn::tests {

// The loops that this process runs, see effective_isa().
std::vector<const layers::cpu::Loops*> runnable_loops();

// Our own kernels alone, in one instruction set.
KernelTable own_kernels(const layers::cpu::Loops& loops);

// One way to run a kernel.
struct Form {
  const layers::cpu::Loops* loops = nullptr;
  DataType type = DataType::f32;
  Layout layout = Layout::nhwc;
};
std::vector<Form> all_forms();  // loops x {f32, bf16} x {nhwc, nchw16c}
std::string name_of(const Form& form);

// A plain tensor of draws in [-1, 1), rounded to the type; of integers in [0, 10) for i32 and u8.
HostTensor draws(Shape shape, DataType type, std::uint64_t seed);
HostTensor constant(Shape shape, float value);

// Runs the op's kernel in this form and its reference loops on the same operands, whose images are
// of the form's type, and expects the same results. Fails if there is no kernel.
void expect_like_reference(const Op& op, const std::vector<const HostTensor*>& in, const Form& form,
                           double tolerance);

// Sets the number of OpenMP threads, and restores it.
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
