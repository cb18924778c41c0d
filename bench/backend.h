#pragma once

#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "bench/config.h"
#include "runtime/device.h"
#include "runtime/kernel.h"

namespace cnn::bench {

// A device, what it can run, and what the program says about it.
struct Backend {
  std::string name;         // "cpu"
  std::string device_text;  // for the header: "/cpu:0"
  std::unique_ptr<Device> device;
  KernelTable kernels;
  std::vector<int> cpus;         // processors that compute, one thread each
  std::string processor;         // "Intel(R) Xeon(R) Processor"
  std::string instruction_sets;  // "avx2 avx512"
  std::vector<std::pair<std::string, std::string>> libraries;  // name, version running
  Layout (*preferred_layout)(DataType) = nullptr;
  std::size_t memory_limit = 0;  // bytes free for the run when it started
};

// The backend that the flags ask for, with the calling thread prepared to make kernels for it.
// Throws Error if there is none, or if it cannot compute in the asked precision.
Backend make_backend(const Config& config);

// Type of activations for --precision on this backend; throws Error that names the alternative.
DataType compute_type(const Config& config, const Backend& backend);

}  // namespace cnn::bench
