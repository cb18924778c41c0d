#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "allreduce/choose.h"
#include "allreduce/shared_memory.h"
#include "allreduce/world.h"
#include "bench/flags/config.h"
#include "layers/all_reduce.h"

namespace cnn::bench {

// Whether ranks have something to exchange.
bool exchanges_gradients(const Config& config);

// How gradients are cut into buckets.
layers::BucketSizes bucket_sizes(const CommFlags& flags);

// The settings of an exchange among these ranks.
struct Exchange {
  allreduce::Settings settings;    // with the links that are assumed of them
  std::vector<std::string> notes;  // what the user may not expect
  std::string by_device;           // how devices exchange that do it their own way; else empty
};
// peers_memory: ranks of a host see one another's. Throws Error for an algorithm that these ranks
// cannot use.
Exchange make_exchange(const Config& config, const allreduce::Topology& topology,
                       bool peers_memory);

// How long ranks wait for one another.
allreduce::WorldOptions world_options(const CommFlags& flags);
allreduce::SharedMemoryOptions shared_memory_options(const CommFlags& flags,
                                                     std::size_t segment_bytes);

// Links in their place, where flags give them.
allreduce::Links with_flags(allreduce::Links links, const CommFlags& flags);
// The same of how they were found.
allreduce::LinkSources with_flags(allreduce::LinkSources sources, const CommFlags& flags);

}  // namespace cnn::bench
