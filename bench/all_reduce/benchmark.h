#pragma once

#include <functional>
#include <vector>

#include "allreduce/world.h"
#include "bench/all_reduce/options.h"
#include "bench/flags/config.h"
#include "bench/machine/backend.h"
#include "bench/report/console.h"

namespace cnn::bench {

class Interruption;

struct ReduceRun {
  const Config& config;
  const ReduceOptions& options;
  Console& console;
  Interruption& interruption;
};

// Returns the elements of each gradient bucket of --model, in the order in which a training step
// exchanges them: the last layer's first.
std::vector<std::size_t> gradient_buckets(const Config& config, const Backend& backend);

// Runs the whole benchmark, over ranks of this process or as one of the processes of a world.
// Returns the exit status: 1 if a sum is wrong, which rank 0 reports. After an interruption on
// which all ranks agree, it ends early with the results so far. Throws Error.
int run_reductions(const ReduceRun& run, const Backend& backend);
int run_reductions(const ReduceRun& run, const std::function<Backend(const Config&)>& make_backend,
                   allreduce::World& world);

}  // namespace cnn::bench
