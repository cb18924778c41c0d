#pragma once

#include <cstddef>

#include "allreduce/algorithm.h"
#include "allreduce/cost.h"

namespace cnn::allreduce {

// The seconds that an algorithm would take, by formulas: rough, but at once for any number of
// ranks.
struct Estimate {
  double seconds = 0;
  double messages = 0;  // of all ranks, which is what simulate() takes its time for
};

// For hosts of equally many ranks. Links of single ranks do not count.
Estimate estimate(const Algorithm& algorithm, const Options& options, const Topology& topology,
                  std::size_t elements, const Links& links);

}  // namespace cnn::allreduce
