#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace cnn::allreduce {

// The progress of a rank as one word that other ranks can read; 0: nothing is known.
using Progress = std::atomic<std::uint64_t>;
static_assert(Progress::is_always_lock_free);

enum class Phase : std::uint8_t { unknown, input, compute, between };

// Encodes a phase and a step, which is counted from 0.
std::uint64_t progress_at(Phase phase, std::int64_t step);
// Returns a text such as "computes step 12", counted from 1; empty if nothing is known.
std::string progress_text(std::uint64_t progress);

// The position of a rank in an exchange.
struct ExchangePosition {
  std::uint64_t progress = 0;    // of this rank, see above
  std::uint64_t reductions = 0;  // of the bucket so far, with the current one
  std::size_t bucket = 0;
  std::string_view phase;  // "reduce-scatter"
};
// Returns a text such as "step 17, bucket 4, reduce-scatter", or "reduction 17 of bucket 4, ..." in
// a program without steps.
std::string position_text(const ExchangePosition& position);

}  // namespace cnn::allreduce
