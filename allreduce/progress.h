#pragma once

#include <atomic>
#include <cstdint>
#include <string>

namespace cnn::allreduce {

// Where a rank is in its work, in one word that others can see; 0: nothing is known.
using Progress = std::atomic<std::uint64_t>;
static_assert(Progress::is_always_lock_free);

enum class Phase : std::uint8_t { unknown, input, compute, between };

// step: from 0.
std::uint64_t progress_at(Phase phase, std::int64_t step);
// "computes step 12", counted from 1; empty: nothing is known.
std::string progress_text(std::uint64_t progress);

}  // namespace cnn::allreduce
