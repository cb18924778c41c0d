#pragma once

#include <optional>

#include "runtime/device_timer.h"
#include "runtime/kernel.h"

namespace cnn::layers::cuda {

// Times nodes of a step, one at a time, by the kernels that would run them.
class NodeTimer {
 public:
  explicit NodeTimer(Device& device) : timer_(device) {}  // which must outlive the timer

  // Returns the seconds of one run of the table's kernel for a node, on operands allocated for it,
  // which stay in the second-level cache as far as they fit. Returns nothing if they do not fit the
  // device or no kernel runs.
  std::optional<double> seconds_of(const KernelTable& table, const Op& op,
                                   const Signature& signature);

 private:
  std::optional<double> run(const KernelTable& table, const Op& op, const Signature& signature);

  DeviceTimer timer_;
};

}  // namespace cnn::layers::cuda
