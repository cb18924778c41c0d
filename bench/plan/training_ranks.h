#pragma once

#include <cstdint>

namespace cnn::bench {

struct Job;

// Ranks that train one model and divide its examples among them: all of the run, or one with
// --variable_update=independent, where each rank is a copy of the run on one device.
int training_ranks(const Job& job);

// Examples that these take in a step.
std::int64_t examples_per_step(const Job& job);

}  // namespace cnn::bench
