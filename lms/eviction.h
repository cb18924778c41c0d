#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "lms/edit.h"
#include "runtime/schedule.h"

namespace cnn::lms {

struct Request;
struct Stashed;

// Which of the tensors that are not in use goes when bytes are missing. first_that_suffices: the
// one out of use longest that has enough; if none has, the one out of use longest. oldest: the one
// out of use longest, but those that the next step needs come last.
enum class EvictionRule : std::uint8_t { first_that_suffices, oldest };

// A tensor that was away.
struct Eviction {
  const Stashed* tensor = nullptr;
  StepId last_used{};  // before
  StepId freed_for{};  // the step that needed the bytes
  StepId back_for{};   // the step that uses the tensor again
  bool sufficed = false;
  bool again = false;  // it was away before
};

// An allocator of so many bytes, replayed over the step: tensors come back when a step uses them,
// and others go where that or a result would not fit. It counts bytes and knows no addresses. Where
// all that may go is away and it still does not fit, it goes on, and the plan will not fit.
// tensors: what may go; at most as many of them do as the options say.
std::vector<Eviction> replay_allocator(const Request& request, std::size_t bytes,
                                       std::span<const Stashed> tensors, EvictionRule rule);

}  // namespace cnn::lms
