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

// Returns whether ranks exchange gradients.
bool exchanges_gradients(const Config& config);

// Returns the sizes of gradient buckets.
layers::BucketSizes bucket_sizes(const CommFlags& flags);

// The settings of an exchange among these ranks.
struct Exchange {
  allreduce::Settings settings;    // with assumed links
  std::vector<std::string> notes;  // for the user
  std::string by_device;           // how devices exchange by their own library; or empty
};
// peers_memory: whether ranks of a host can address one another's memory. Throws Error if these
// ranks cannot use the algorithm.
Exchange make_exchange(const Config& config, const allreduce::Topology& topology,
                       bool peers_memory);

// Return the timeouts of ranks that wait for one another.
allreduce::WorldOptions world_options(const CommFlags& flags);
allreduce::SharedMemoryOptions shared_memory_options(const CommFlags& flags,
                                                     std::size_t segment_bytes);

// Returns the links with the values of flags in their place.
allreduce::Links with_flags(allreduce::Links links, const CommFlags& flags);
// Returns the origins of these links.
allreduce::LinkSources with_flags(allreduce::LinkSources sources, const CommFlags& flags);

}  // namespace cnn::bench
