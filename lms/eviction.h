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

// The choice of an unused tensor to evict when bytes are missing. first_that_suffices: the least
// recently used one that is large enough; if none is, the least recently used one. oldest: the
// least recently used one, with tensors of the next step last.
enum class EvictionRule : std::uint8_t { first_that_suffices, oldest };

// A tensor that was evicted and returned.
struct Eviction {
  const Stashed* tensor = nullptr;
  StepId last_used{};  // before the eviction
  StepId freed_for{};  // the step that needed the bytes
  StepId back_for{};   // the step that uses the tensor again
  bool sufficed = false;
  bool again = false;  // it was evicted before
};

// Simulates an allocator of so many bytes over the step: tensors return when a step uses them, and
// others are evicted if these or a result would not fit. Counts bytes without addresses. If
// everything evictable is away and bytes are still missing, it continues, and the plan will not
// fit. tensors: candidates; at most as many of them leave as the options permit.
std::vector<Eviction> replay_allocator(const Request& request, std::size_t bytes,
                                       std::span<const Stashed> tensors, EvictionRule rule);

}  // namespace cnn::lms
