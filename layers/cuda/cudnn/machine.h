#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

namespace cnn::layers::cuda {

// The properties of a GPU model that suffice to plan a step for it without the device.
struct Machine {
  std::string name;         // "H200"
  std::string device_json;  // cuDNN's serialised device properties
  int capability = 0;       // 90 for compute capability 9.0
  int multiprocessors = 0;
  std::size_t memory_bytes = 0;
};

}  // namespace cnn::layers::cuda
