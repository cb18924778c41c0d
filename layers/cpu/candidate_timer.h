#pragma once

#include <span>
#include <vector>

#include "layers/cpu/conv_candidates.h"
#include "runtime/device.h"

namespace cnn::layers::cpu {

// Returns the seconds of one run of each candidate on operands of their true size, in turn, the
// best of a few runs each. A candidate with images in other layouts than `settled` has is timed
// with the conversions that it makes necessary; those of weights are not counted. Infinity: the
// kernel cannot be made. All are infinity if their operands do not fit half of the free memory. The
// calling thread's team runs them.
std::vector<double> seconds_of_candidates(Device& device, const Op& op, const Signature& settled,
                                          std::span<const ConvCandidate> all,
                                          const KernelTable& converts);

}  // namespace cnn::layers::cpu
