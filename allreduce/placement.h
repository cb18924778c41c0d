#pragma once

#include <cstddef>
#include <optional>
#include <vector>

#include "allreduce/algorithm.h"

// Where a launcher has put the ranks decides who is whose neighbour in an algorithm.
namespace cnn::allreduce {

// The rank at each position: the ranks of a host stand together, and among them those of a NUMA
// node. Hosts stand in the order of their first ranks, as do the nodes of a host; the ranks of a
// node ascend. Algorithms take their groups by position, so that as little as possible crosses
// hosts and nodes however `mpirun --map-by` has dealt the ranks. The identity where they stand
// together already.
std::vector<int> ranks_by_position(const Topology& topology);

// Whether the ranks of each host have consecutive numbers.
bool hosts_are_contiguous(const Topology& topology);
// Whether the ranks of each NUMA node have: then ranks_by_position() is the identity.
bool nodes_are_contiguous(const Topology& topology);

// Gives the ranks these NUMA nodes, by rank; a negative one is unknown. Where a node of a host is
// unknown the host counts as one node, and where each host is one node the topology has none.
void set_numa_nodes(Topology& topology, std::vector<int> nodes);

// The ranks of each NUMA node of each host, in the order of the positions.
std::vector<std::vector<int>> ranks_by_node(const Topology& topology);
// The ranks of each NUMA node, where all nodes have equally many and all hosts equally many nodes,
// two at least; else nothing.
std::optional<int> ranks_of_each_node(const Topology& topology);

// How many of the dimensions of a grid, from the first on, have all their groups within hosts.
std::size_t dims_within_hosts(const Topology& topology, const std::vector<int>& dims);

// The same ranks, numbered by their position.
Topology by_position(const Topology& topology, const std::vector<int>& ranks);

// Names the ranks of a plan that was made for positions.
void rename_positions(RankPlan& plan, const std::vector<int>& ranks);

}  // namespace cnn::allreduce
