#pragma once

#include <cstdint>

namespace cnn::bench {

struct Job;

// Returns the number of ranks that train one model and divide its examples: all ranks of the run,
// or 1 with --variable_update=independent, where each rank is a copy of the run on one device.
int training_ranks(const Job& job);

// Returns the examples that these ranks take per step.
std::int64_t examples_per_step(const Job& job);

}  // namespace cnn::bench
