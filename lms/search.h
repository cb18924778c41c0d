#pragma once

#include <cstddef>

#include "lms/evaluate.h"
#include "lms/outline.h"
#include "lms/unroll.h"

namespace cnn::lms {

struct SearchOptions {
  std::size_t device_bytes = 0;  // of the arena
  bool swaps = true, drops = true;
  bool thriftiest = false;        // the fewest bytes at the peak, whatever the time
  std::size_t most_tensors = 0;   // that may leave or be dropped; 0: all
  std::size_t work = 40'000'000;  // unrolled steps that may be looked at: bounds the time
};

// The best fates found, and what they cost. Depends on nothing but its arguments.
struct Found {
  Fates fates;
  Evaluation evaluation;
};
Found search(const Outline& outline, const SearchOptions& options);

}  // namespace cnn::lms
