#pragma once

#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include "allreduce/algorithm.h"
#include "allreduce/connection.h"
#include "allreduce/world.h"
#include "bench/flags/config.h"

namespace cnn::bench {

class Peers;

// The NUMA node of each of these ranks, which divide the processors of this process among them; -1
// where the processors of a rank are on several nodes or the system does not tell. root: of its
// files.
std::vector<int> numa_nodes_of_ranks(int ranks, const std::filesystem::path& root = "/");

// RankPlacement::nodes of all placements, each of whose processes has so many ranks. All processes
// call it together, after they have divided the processors. Throws PeerLost.
void gather_numa_nodes(allreduce::World& world, std::span<allreduce::RankPlacement> placements,
                       int each);

// The topology with the NUMA nodes that --comm_numa_nodes gives; as it is where that is not given.
// Throws Error for a list that does not fit the ranks.
allreduce::Topology with_numa_nodes(allreduce::Topology topology, const CommFlags& flags);

// The ranks of this process, where it has no others: their NUMA nodes as found, or as the flags
// give them.
allreduce::Topology topology_of_threads(const Config& config);

// All ranks of a run. peers: the other processes; null: there are none.
allreduce::Topology topology_of_run(const Config& config, const Peers* peers);

// "ranks 0-3 | 4-7 on 2 NUMA nodes"; of several hosts with "; " between them. Empty where no host
// has several nodes.
std::string numa_text(const allreduce::Topology& topology);

}  // namespace cnn::bench
