#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "lms/edit.h"
#include "runtime/graph.h"
#include "runtime/schedule.h"

namespace cnn::lms {

// A copy back as an original policy made it, for some of the readers.
struct SwapIn {
  std::vector<StepId> readers;  // ascending, at least one
  // Its trigger. Nothing, or a step that is not before the first reader: right before that one.
  std::optional<StepId> not_before;
};

// A tensor that leaves, and all its copies back. The originals had a tensor of its own for each.
struct SwappedTensor {
  TensorId tensor{};
  StepId out_behind{};  // the last step that uses the tensor itself
  std::vector<SwapIn> swap_ins;
};

// The copies that run: the tensor is on the device once at a time. A copy back that would start
// before the readers of the one before are done is not made, as they read the same bytes; later
// ones come without another copy out. Readers up to `out_behind` have the tensor itself.
std::vector<Swap> one_at_a_time(SwappedTensor swapped);
// Says so in the log, where `made` of the `original` copies back are made.
std::string shared_copies_text(std::size_t made, std::size_t original);

}  // namespace cnn::lms
