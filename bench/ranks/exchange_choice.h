#pragma once

#include <cstddef>

#include "allreduce/algorithm.h"
#include "bench/flags/config.h"
#include "bench/ranks/exchange_flags.h"

namespace cnn::bench {

// make_exchange(), where some algorithm does what the flags ask of these ranks for buckets of up to
// so many elements; 0: buckets are not known yet. Else throws Error that names the flags and, where
// any does, the nearest setting with which the exchange is possible.
Exchange possible_exchange(const Config& config, const allreduce::Topology& topology,
                           bool peers_memory, std::size_t elements);

}  // namespace cnn::bench
