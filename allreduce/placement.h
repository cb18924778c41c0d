#pragma once

#include <cstddef>
#include <vector>

#include "allreduce/algorithm.h"

// Where a launcher has put the ranks decides who is whose neighbour in an algorithm.
namespace cnn::allreduce {

// The rank at each position: ranks of a host stand together, hosts in the order of their first
// ranks and the ranks of a host in their own. Algorithms take their groups by position, so that as
// little as possible crosses hosts however `mpirun --map-by` has dealt the ranks. The identity
// where they stand together already.
std::vector<int> ranks_by_position(const Topology& topology);

// Whether ranks_by_position() is the identity.
bool hosts_are_contiguous(const Topology& topology);

// How many of the dimensions of a grid, from the first on, have all their groups within hosts.
std::size_t dims_within_hosts(const Topology& topology, const std::vector<int>& dims);

// The same ranks, numbered by their position.
Topology by_position(const Topology& topology, const std::vector<int>& ranks);

// Names the ranks of a plan that was made for positions.
void rename_positions(RankPlan& plan, const std::vector<int>& ranks);

}  // namespace cnn::allreduce
