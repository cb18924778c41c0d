#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <vector>

#include "layers/cuda/library/plan.h"
#include "runtime/device.h"

namespace cnn::layers::cuda {

// Times plans on a device, on operands and workspace of their true size.
class Tuner {
 public:
  // Both must outlive the tuner.
  Tuner(Device& device, cudnnHandle_t handle);

  struct Timed {
    Choice choice;
    double seconds = 0;  // of one run
  };
  // The fastest of choices that have a plan. Throws Error if none of them runs, or if the operands
  // do not fit the device.
  Timed fastest(const NativeGraph& graph, std::span<const Choice> choices);

 private:
  double seconds_of(const Plan& plan, std::span<void* const> pointers, std::byte* workspace);
  void fill(std::byte* to, std::size_t bytes, DataType type);

  Device& device_;
  cudnnHandle_t handle_;
  std::unique_ptr<Stream> stream_;
  Buffer pattern_;  // host bytes that tensors are filled with
};

}  // namespace cnn::layers::cuda
