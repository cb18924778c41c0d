#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

namespace cnn::layers::cuda {

// The facts of a kind of device that suffice to plan a step for it without having one.
struct Machine {
  std::string name;         // "H200"
  std::string device_json;  // as cuDNN describes the device to itself
  int capability = 0;       // 90 for compute capability 9.0
  int multiprocessors = 0;
  std::size_t memory_bytes = 0;
};

}  // namespace cnn::layers::cuda
