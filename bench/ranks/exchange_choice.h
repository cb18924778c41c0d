#pragma once

#include <cstddef>

#include "allreduce/algorithm.h"
#include "bench/flags/config.h"
#include "bench/ranks/exchange_flags.h"

namespace cnn::bench {

// Returns make_exchange() if some algorithm meets the flags on these ranks for buckets of up to
// `elements`; 0: bucket sizes are unknown. Otherwise throws Error with the flags and, if one
// exists, the nearest setting that makes the exchange possible.
Exchange possible_exchange(const Config& config, const allreduce::Topology& topology,
                           bool peers_memory, std::size_t elements);

}  // namespace cnn::bench
