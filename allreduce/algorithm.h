#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "allreduce/step_list.h"

namespace cnn::allreduce {

// The placement of ranks on hosts, and the relative speeds of their links.
struct Topology {
  std::vector<int> host_of;       // by rank, any numbers
  std::vector<double> link = {};  // by rank: the relative speed of its link; empty: all are equal
  // By rank: the NUMA node of its processors, numbered within each host. Empty: every host counts
  // as one node, or the nodes are unknown.
  std::vector<int> numa_node_of = {};

  int ranks() const { return static_cast<int>(host_of.size()); }
  bool one_host() const;
  // Returns whether two ranks are on the same NUMA node of the same host.
  bool same_node(int a, int b) const;
};
Topology ranks_on_hosts(int hosts, int ranks_each);

// The parameters of an algorithm.
struct Options {
  Order order = Order::fast;
  Wire wire = Wire::f32;
  std::vector<int> dims = {};  // of a grid, the fastest first; the product is the number of ranks
  int rings = 1;               // that run concurrently
  int chunks = 1;              // number of chunks of the buffer, or of a ring's part of it
  int window = 8;              // number of chunks that run concurrently
  bool rotate = false;         // whether successive chunks take the dimensions in rotated order
  int owners = 0;              // of a shuffle: number of ranks that sum, from rank 0 on; 0: all
};

// The group of permutations of the ranks that maps an algorithm's plans onto one another, if chunks
// are cut into equal slices: rotations of all ranks by whole hosts, rotations in each dimension of
// the grid, or flips of the bits of the rank numbers, whose count is then a power of two.
enum class Invariance : std::uint8_t { none, rotation, grid, bits };

// An all-reduce algorithm: a row of the catalog.
struct Algorithm {
  std::string_view name, about;
  // The generator of step lists. Called by make_plan(), which has checked the options.
  RankPlan (*plan)(const Topology& topology, int rank, std::size_t elements,
                   const Options& options) = nullptr;
  bool ordered = false;       // supports Order::rank and Order::tree for any number of ranks
  bool serial = false;        // supports Order::rank, but not tree, for any number of ranks
  bool pairs = false;         // supports Order::tree for a power of two
  bool narrow = false;        // supports a 16-bit wire, as no value is rounded at each hop
  bool grid = false;          // uses Options::dims
  bool peers_memory = false;  // needs ranks on one host; a grid, only within its first dimensions
  Invariance invariance = Invariance::none;
};

// Returns the product of the dimensions, all of which are positive; the largest std::int64_t if it
// is larger than that.
std::int64_t ranks_of_grid(std::span<const int> dims);

std::span<const Algorithm> catalog();
// Returns the algorithm of that name. Throws Error that lists the names.
const Algorithm& find(std::string_view name);

// Returns the step list of one rank. With Order::fast the algorithm arranges the ranks by position,
// see rank_order.h; otherwise by rank number, as the order of the sums demands. Throws Error if the
// algorithm does not support the options or the dims do not fit the ranks.
RankPlan make_plan(const Algorithm& algorithm, const Topology& topology, int rank,
                   std::size_t elements, const Options& options);
std::vector<RankPlan> plans_of_all(const Algorithm& algorithm, const Topology& topology,
                                   std::size_t elements, const Options& options);

}  // namespace cnn::allreduce
