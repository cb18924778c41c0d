#pragma once

#include <functional>
#include <vector>

#include "allreduce/world.h"
#include "bench/all_reduce/options.h"
#include "bench/flags/config.h"
#include "bench/machine/backend.h"
#include "bench/report/console.h"

namespace cnn::bench {

// Elements of the gradients of --model, in buckets as a training step exchanges them: the last
// layer's first.
std::vector<std::size_t> gradient_buckets(const Config& config, const Backend& backend);

// The whole program over ranks of this process, or as one of the processes of a world. Returns the
// exit status: 1 if a sum is wrong, which rank 0 tells. Throws Error.
int run_reductions(const Config& config, const Backend& backend, const ReduceOptions& options,
                   Console& console);
int run_reductions(const Config& config, const std::function<Backend()>& make_backend,
                   allreduce::World& world, const ReduceOptions& options, Console& console);

}  // namespace cnn::bench
