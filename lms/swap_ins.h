#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "lms/edit.h"
#include "runtime/graph.h"
#include "runtime/schedule.h"

namespace cnn::lms {

// A copy back in an original policy, for some of the readers.
struct SwapIn {
  std::vector<StepId> readers;  // ascending, at least one
  // Its trigger. Nothing, or a step not before the first reader: right before the first reader.
  std::optional<StepId> not_before;
};

// A tensor that leaves, with all its copies back. The originals use a separate tensor for each
// copy.
struct SwappedTensor {
  TensorId tensor{};
  StepId out_behind{};  // the last step that uses the tensor itself
  std::vector<SwapIn> swap_ins;
};

// Returns the copies to execute: one copy of the tensor at a time is on the device. Omits a copy
// back that would start before the previous one's readers are done, as these read the same bytes;
// later copies back need no further copy out. Readers up to `out_behind` use the tensor itself.
std::vector<Swap> one_at_a_time(SwappedTensor swapped);
// Returns a log line if only `made` of the `original` copies back are made.
std::string shared_copies_text(std::size_t made, std::size_t original);

}  // namespace cnn::lms
