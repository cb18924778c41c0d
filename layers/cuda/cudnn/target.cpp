#include "layers/cuda/cudnn/target.h"

#include <cstdint>
#include <span>

namespace cnn::layers::cuda {

Target Target::described(const std::string& device_json) {
  Target target;
  target.properties_.emplace(CUDNN_BACKEND_DEVICEPROP_DESCRIPTOR);
  // The attribute's size includes the terminating zero.
  target.properties_->set(CUDNN_ATTR_DEVICEPROP_JSON_REPRESENTATION,
                          std::span<const char>(device_json.c_str(), device_json.size() + 1));
  target.properties_->finalize("the stored description of a device");
  return target;
}

Target Target::live(cudnnHandle_t handle) {
  Target target;
  target.handle_ = handle;
  return target;
}

std::string device_json(int ordinal) {
  Descriptor properties(CUDNN_BACKEND_DEVICEPROP_DESCRIPTOR);
  properties.set(CUDNN_ATTR_DEVICEPROP_DEVICE_ID, std::int32_t{ordinal});
  properties.finalize("the description of device " + std::to_string(ordinal));
  return properties.text(CUDNN_ATTR_DEVICEPROP_JSON_REPRESENTATION);
}

std::string cudnn_version_text(std::size_t version) {
  return std::to_string(version / 10000) + "." + std::to_string(version % 10000 / 100) + "." +
         std::to_string(version % 100);
}

}  // namespace cnn::layers::cuda
