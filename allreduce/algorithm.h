#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "allreduce/step_list.h"

namespace cnn::allreduce {

// Where ranks run.
struct Topology {
  std::vector<int> host_of;       // by rank, in any order
  std::vector<double> link = {};  // by rank, how fast its link is beside others; empty: all alike
  // The NUMA node of each rank's processors, numbered in each host. Empty: a host is one node, or
  // nothing is known of its nodes.
  std::vector<int> numa_node_of = {};

  int ranks() const { return static_cast<int>(host_of.size()); }
  bool one_host() const;
  // Whether two ranks have one host, and one NUMA node of it.
  bool same_node(int a, int b) const;
};
Topology ranks_on_hosts(int hosts, int ranks_each);

struct Options {
  Order order = Order::fast;
  Wire wire = Wire::f32;
  std::vector<int> dims = {};  // of a grid, the fastest first; their product is the number of ranks
  int rings = 1;               // side by side
  int chunks = 1;              // of the buffer, or of a ring's part of it
  int window = 8;              // chunks at once
  bool rotate = false;         // chunks take the dimensions in different orders
  int owners = 0;              // of a shuffle: the first so many ranks sum; 0: all
};

// The symmetry that maps an algorithm's plans onto one another, where chunks are cut into equal
// slices: a rotation of all ranks by whole hosts, a rotation in each dimension of the grid, or
// flipping bits of the ranks, which then are a power of two.
enum class Invariance : std::uint8_t { none, rotation, grid, bits };

// One way to reduce: a row of the catalog.
struct Algorithm {
  std::string_view name, about;
  RankPlan (*plan)(const Topology& topology, int rank, std::size_t elements,
                   const Options& options) = nullptr;
  bool ordered = false;       // has Order::rank and tree for any number of ranks
  bool serial = false;        // has Order::rank, but not tree, for any number of ranks
  bool pairs = false;         // has Order::tree for a power of two
  bool narrow = false;        // messages may be narrower than f32: no value is rounded at each hop
  bool grid = false;          // works by dims
  bool peers_memory = false;  // needs all ranks on one host; of a grid, those of a first group
  Invariance invariance = Invariance::none;
};

std::span<const Algorithm> catalog();
const Algorithm& find(std::string_view name);  // throws Error that lists the names

// The list of one rank. Neighbours, the dimensions of a grid and the sums in the memory of one host
// go by position, see placement.h, where Options::order is fast, and by rank where sums have an
// order. Throws Error that says what
// the algorithm cannot do, or which dims do not fit the ranks.
RankPlan make_plan(const Algorithm& algorithm, const Topology& topology, int rank,
                   std::size_t elements, const Options& options);
std::vector<RankPlan> plans_of_all(const Algorithm& algorithm, const Topology& topology,
                                   std::size_t elements, const Options& options);

}  // namespace cnn::allreduce
