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

// Code that the host side of our own kernels shares: how operands lie, the type of their elements,
// the pieces of a workspace, and a kernel made of a function object. For .cu files.
namespace cnn::layers::cuda {

// The types that activations and weights have on a device.
inline bool is_float(DataType type) {
  return type == DataType::f32 || type == DataType::f16 || type == DataType::bf16;
}

template <class T>
struct TypeTag {
  using Type = T;
};

// Calls function(TypeTag<T>) with the C++ type of a real DataType. Throws Error on i32 and u8.
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

template <class T>
T* data_of(const TensorView& view) {
  return reinterpret_cast<T*>(view.data);
}

// Calls work(stream, operands), which launches and returns.
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

// A count of blocks or threads as a launch takes it. Throws Error where it does not fit.
inline unsigned launch_count(std::int64_t count) {
  check(count > 0 && count < (std::int64_t{1} << 31),
        "a kernel would need " + std::to_string(count) + " blocks: make the batch smaller");
  return static_cast<unsigned>(count);
}

}  // namespace cnn::layers::cuda
