#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "runtime/cpu/device.h"

namespace cnn::bench {
class Session;
}

namespace cnn::tests {

using Words = std::vector<std::string>;

Words with(Words words, const Words& more);

// Runs a session on an emulated device of exactly `bytes` bytes with guard pages around them. The
// rest of the memory is its host's.
class DeviceRun {
 public:
  DeviceRun(const Words& flags, std::size_t bytes, const CopyJitter& jitter = {});
  ~DeviceRun();
  DeviceRun(const DeviceRun&) = delete;
  DeviceRun& operator=(const DeviceRun&) = delete;

  bench::Session& session();
  // Return the bytes of each allocation.
  const std::vector<std::size_t>& of_device() const;
  const std::vector<std::size_t>& of_host() const;

  // Resumes from the newest checkpoint of --train_dir, if there is one, and saves one at the end.
  // Returns the total losses.
  std::vector<double> train(std::int64_t steps);
  double evaluate();

 private:
  struct Parts;
  std::unique_ptr<Parts> parts_;
};

}  // namespace cnn::tests
