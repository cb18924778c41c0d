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

// Returns the NUMA node of each of these ranks, which divide the processors of this process; -1 if
// a rank's processors span several nodes or the system does not tell. root: of the system's files.
std::vector<int> numa_nodes_of_ranks(int ranks, const std::filesystem::path& root = "/");

// Fills RankPlacement::nodes of all placements, for processes of `each` ranks. All processes call
// it together, after they have divided the processors. Throws PeerLost.
void gather_numa_nodes(allreduce::World& world, std::span<allreduce::RankPlacement> placements,
                       int each);

// Returns the topology with the NUMA nodes of --comm_numa_nodes, or unchanged without the flag.
// Throws Error if the list does not fit the ranks.
allreduce::Topology with_numa_nodes(allreduce::Topology topology, const CommFlags& flags);

// Returns the topology of a single process's ranks: their detected NUMA nodes, or those of the
// flags.
allreduce::Topology topology_of_threads(const Config& config);

// Returns the topology of all ranks of a run. peers: the other processes; null: there are none.
allreduce::Topology topology_of_run(const Config& config, const Peers* peers);

// Returns "ranks 0-3 | 4-7 on 2 NUMA nodes"; "; " separates hosts. Empty if no host has several
// nodes.
std::string numa_text(const allreduce::Topology& topology);

}  // namespace cnn::bench
