#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <vector>

#include "layers/cuda/cudnn/plan.h"
#include "runtime/device_timer.h"

namespace cnn::layers::cuda {

// The autotuner: measures cuDNN plans on the device, with operands and workspace of the real size.
class Tuner {
 public:
  // Both must outlive the tuner.
  Tuner(Device& device, cudnnHandle_t handle);

  struct Timed {
    Choice choice;
    double seconds = 0;  // of one run
  };
  // Returns the fastest of the choices with its time; nothing if the operands do not fit the
  // device. Throws Error if no choice runs.
  std::optional<Timed> fastest(const NativeGraph& graph, std::span<const Choice> choices);

 private:
  struct Memory {
    std::vector<Buffer> operands;  // filled, of the stored tensors of a graph
    Buffer workspace;
  };
  // Returns the memory for a graph with a workspace of so many bytes; nothing if it does not fit
  // the device.
  std::optional<Memory> memory_of(const OperationGraph& graph, std::size_t workspace);
  double seconds_of(const Plan& plan, std::span<void* const> pointers, std::byte* workspace);

  DeviceTimer timer_;
  cudnnHandle_t handle_;
};

}  // namespace cnn::layers::cuda
