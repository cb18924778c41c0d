#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>

#include "layers/device_layout.h"
#include "layers/workspace.h"
#include "runtime/cuda/launch.h"
#include "runtime/divide_up.h"
#include "runtime/error.h"
#include "runtime/kernel.h"

// Host code that our own kernels share: dispatch on the element type, typed operand pointers,
// launch sizes, and a Kernel made from a function object. Only .cu files include it.
namespace cnn::layers::cuda {

// Returns whether activations and weights of this type are possible on a device.
inline bool is_float(DataType type) {
  return type == DataType::f32 || type == DataType::f16 || type == DataType::bf16;
}

// Passes a type as a value, for generic lambdas.
template <class T>
struct TypeTag {
  using Type = T;
};

// Dispatches on the element type: calls function(TypeTag<T>) with the C++ type of a floating-point
// DataType and returns its result. Throws Error for i32 and u8.
template <class Function>
auto with_type(DataType type, const Function& function) {
  switch (type) {
    case DataType::f32:
      return function(TypeTag<float>{});
    case DataType::f16:
      return function(TypeTag<__half>{});
    case DataType::bf16:
      return function(TypeTag<__nv_bfloat16>{});
    case DataType::i32:
    case DataType::u8:
      break;
  }
  throw Error("a kernel of real tensors was made for " + std::string(name_of(type)));
}

// Returns the address of an operand, typed; nullptr for an empty view.
template <class T>
T* data_of(const TensorView& view) {
  return reinterpret_cast<T*>(view.data);
}

// A kernel that calls work(stream, operands), which enqueues and returns.
template <class Work>
class OwnKernel final : public Kernel {
 public:
  explicit OwnKernel(Work work) : work_(std::move(work)) {}
  void run(Stream& stream, const Operands& operands) override { work_(stream, operands); }

 private:
  Work work_;
};

template <class Work>
std::unique_ptr<Kernel> own_kernel(Work work) {
  return std::make_unique<OwnKernel<Work>>(std::move(work));
}

// Returns a number of blocks or threads as a grid dimension. Throws Error unless it is in [1,
// 2^31).
inline unsigned launch_count(std::int64_t count) {
  check(count > 0 && count < (std::int64_t{1} << 31),
        "a kernel would need " + std::to_string(count) + " blocks: make the batch smaller");
  return static_cast<unsigned>(count);
}

}  // namespace cnn::layers::cuda
