#pragma once

#include <cstddef>
#include <optional>
#include <vector>

#include "allreduce/algorithm.h"

// Topology-aware reordering of ranks: which rank takes which position in an algorithm.
namespace cnn::allreduce {

// Returns the rank at each position. Ranks of a host are adjacent, and among them those of a NUMA
// node; hosts and nodes stand in the order of their first ranks, and the ranks of a node ascend. So
// neighbours in an algorithm cross as few hosts and nodes as possible, however `mpirun --map-by`
// has dealt the ranks. The identity if the ranks are adjacent already.
std::vector<int> ranks_by_position(const Topology& topology);

// Returns whether the ranks of each host have consecutive numbers.
bool hosts_are_contiguous(const Topology& topology);
// Returns the same for NUMA nodes; then ranks_by_position() is the identity.
bool nodes_are_contiguous(const Topology& topology);

// Sets the NUMA nodes of the ranks; a negative node is unknown. A host with an unknown node counts
// as one node, and if every host is one node the topology gets none.
void set_numa_nodes(Topology& topology, std::vector<int> nodes);

// Returns the ranks of each NUMA node of each host, in the order of positions.
std::vector<std::vector<int>> ranks_by_node(const Topology& topology);
// Returns the number of ranks of each NUMA node if all nodes have equally many and all hosts
// equally many nodes, at least two; otherwise nothing.
std::optional<int> ranks_of_each_node(const Topology& topology);

// Returns how many dimensions of the grid, from the first on, have all their groups within hosts.
std::size_t dims_within_hosts(const Topology& topology, const std::vector<int>& dims);

// Returns the topology of the same ranks, numbered by position.
Topology by_position(const Topology& topology, const std::vector<int>& ranks);

// Replaces positions by rank numbers in a plan.
void rename_positions(RankPlan& plan, const std::vector<int>& ranks);

}  // namespace cnn::allreduce
