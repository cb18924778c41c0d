#pragma once

#include <cstddef>
#include <limits>

#include "lms/evaluate.h"
#include "lms/options.h"
#include "lms/outline.h"
#include "lms/unroll.h"

namespace cnn::lms {

struct SearchOptions {
  SyncMode sync = SyncMode::none;
  std::size_t device_bytes = 0;  // of the arena
  // For what leaves; what leaves in one step is there all at once.
  std::size_t host_bytes = std::numeric_limits<std::size_t>::max();
  bool swaps = true, drops = true;
  bool thriftiest = false;        // the fewest bytes at the peak, whatever the time
  double good_enough = 0;         // seconds: the search ends where a plan takes no longer
  std::size_t work = 40'000'000;  // unrolled steps that may be looked at: bounds the time
  double heat = 0.01;             // how much slower a plan may be, in parts, on the way to another
  std::size_t exchanges = 8;      // of 20 changes of a plan that fits: one moves for another
  const Fates* start = nullptr;   // of a plan for nearly the same; else many simple ones are tried
  bool spares = false;            // at last, what need not move for the time found stays
};

// The best fates found, and what they cost. Depends on nothing but its arguments.
struct Found {
  Fates fates;
  Evaluation evaluation;
};
Found search(const Outline& outline, const SearchOptions& options);

}  // namespace cnn::lms
