#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace cnn::allreduce {

// Where a rank is in its work, in one word that others can see; 0: nothing is known.
using Progress = std::atomic<std::uint64_t>;
static_assert(Progress::is_always_lock_free);

enum class Phase : std::uint8_t { unknown, input, compute, between };

// step: from 0.
std::uint64_t progress_at(Phase phase, std::int64_t step);
// "computes step 12", counted from 1; empty: nothing is known.
std::string progress_text(std::uint64_t progress);

// Where in an exchange a rank is.
struct ExchangePlace {
  std::uint64_t progress = 0;    // of this rank
  std::uint64_t reductions = 0;  // of the bucket, this one too
  std::size_t bucket = 0;
  std::string_view phase;  // "reduce-scatter"
};
// "step 17, bucket 4, reduce-scatter"; of a program without steps "reduction 17 of bucket 4, ...".
std::string place_text(const ExchangePlace& place);

}  // namespace cnn::allreduce
