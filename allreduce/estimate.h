#pragma once

#include <cstddef>

#include "allreduce/algorithm.h"
#include "allreduce/cost.h"

namespace cnn::allreduce {

// The predicted time of an algorithm by closed formulas: rough, but fast for any number of ranks.
struct Estimate {
  double seconds = 0;
  double messages = 0;  // of all ranks, to which the time of simulate() is proportional
};

// Returns the estimate. Assumes that all hosts have equally many ranks; ignores Topology::link.
Estimate estimate(const Algorithm& algorithm, const Options& options, const Topology& topology,
                  std::size_t elements, const Links& links);

}  // namespace cnn::allreduce
