#pragma once

#include <cstddef>
#include <optional>
#include <string>

#include "layers/cuda/cudnn/cudnn_descriptor.h"
#include "runtime/cuda/handle.h"

namespace cnn::layers::cuda {

using CudnnHandle = cnn::cuda::Handle<cudnnHandle_t, cudnnDestroy>;

// The device for which cuDNN builds plans: a live device, or serialised properties of an absent
// one.
class Target {
 public:
  // Makes a target of a description that was read from a device, see Machine::device_json. Throws
  // Error if cuDNN cannot read it.
  static Target described(const std::string& device_json);
  // Makes a target of the handle's device. The handle must outlive the target.
  static Target live(cudnnHandle_t handle);

  bool is_live() const { return handle_ != nullptr; }
  cudnnHandle_t handle() const { return handle_; }  // null if only described
  // Null on a live device.
  const Descriptor* properties() const { return properties_ ? &*properties_ : nullptr; }

 private:
  std::optional<Descriptor> properties_;
  cudnnHandle_t handle_ = nullptr;
};

// Returns cuDNN's description of the device with this ordinal, for Machine::device_json.
std::string device_json(int ordinal);
std::string cudnn_version_text(std::size_t version);  // 91900 -> "9.19.0"

}  // namespace cnn::layers::cuda
