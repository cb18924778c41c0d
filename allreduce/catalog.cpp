#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>
#include <limits>
#include <numeric>
#include <string>

#include "allreduce/algorithm.h"
#include "allreduce/algorithms.h"
#include "allreduce/rank_order.h"
#include "runtime/error.h"

namespace cnn::allreduce {
namespace {

constexpr std::array<Algorithm, 14> rows{{
    {.name = "ring",
     .about = "slices go round one ring",
     .plan = ring,
     .invariance = Invariance::rotation},
    {.name = "multi_ring",
     .about = "rings side by side, each over another rank to the next host",
     .plan = multi_ring,
     .invariance = Invariance::rotation},
    {.name = "direct",
     .about = "everyone sends each slice straight to who sums it",
     .plan = direct,
     .ordered = true,
     .pairs = true,
     .narrow = true,
     .invariance = Invariance::rotation},
    {.name = "grid_of_rings",
     .about = "a ring in each dimension of a grid",
     .plan = grid_of_rings,
     .grid = true,
     .invariance = Invariance::grid},
    {.name = "grid_of_direct",
     .about = "direct exchange in each dimension of a grid",
     .plan = grid_of_direct,
     .ordered = true,
     .pairs = true,
     .narrow = true,
     .grid = true,
     .invariance = Invariance::grid},
    {.name = "doubling",
     .about = "whole buffers over distances 1, 2, 4, ...",
     .plan = doubling,
     .pairs = true,
     .invariance = Invariance::bits},
    {.name = "halving",
     .about = "halves, quarters, ... over distances 1, 2, 4, ... and back",
     .plan = halving,
     .pairs = true,
     .invariance = Invariance::bits},
    {.name = "tree", .about = "up and down two binary trees", .plan = tree},
    {.name = "weighted",
     .about = "direct exchange in which slow links sum less",
     .plan = weighted,
     .ordered = true,
     .pairs = true,
     .narrow = true},
    {.name = "shuffle",
     .about = "a few ranks sum for all",
     .plan = shuffle,
     .ordered = true,
     .pairs = true,
     .narrow = true},
    {.name = "shared",
     .about = "everyone sums a slice in the memory of all",
     .plan = shared,
     .ordered = true,
     .pairs = true,
     .peers_memory = true},
    {.name = "shared_by_node",
     .about = "sums in the memory of each NUMA node, one node after the other",
     .plan = shared_by_node,
     .serial = true,
     .peers_memory = true},
    {.name = "shared_rings",
     .about = "sums in the memory of each host, then rings between hosts",
     .plan = shared_rings,
     .grid = true,
     .peers_memory = true},
    {.name = "shared_direct",
     .about = "sums in the memory of each host, then direct exchange between hosts",
     .plan = shared_direct,
     .ordered = true,
     .pairs = true,
     .narrow = true,
     .grid = true,
     .peers_memory = true},
}};

void check_dims(const Algorithm& algorithm, const Topology& topology, const Options& options) {
  if (!algorithm.grid) {
    check(options.dims.empty(), "all-reduce '" + std::string(algorithm.name) +
                                    "' has no dimensions; grid_of_rings and grid_of_direct do");
    return;
  }
  std::string text;
  for (const int size : options.dims) {
    check(size > 0, "a dimension of an all-reduce must be positive");
    text += (text.empty() ? "" : "x") + std::to_string(size);
  }
  const std::int64_t product = ranks_of_grid(options.dims);
  check(!options.dims.empty() && product == topology.ranks(),
        "invalid dimensions " + (text.empty() ? "(none)" : text) + ": their product is " +
            std::to_string(product) + ", there are " + std::to_string(topology.ranks()) + " ranks");
}

void check_order(const Algorithm& algorithm, const Topology& topology, const Options& options) {
  const bool pairs = algorithm.pairs && options.order == Order::tree &&
                     std::has_single_bit(static_cast<unsigned>(topology.ranks()));
  const bool serial = algorithm.serial && options.order == Order::rank;
  check(options.order == Order::fast || algorithm.ordered || pairs || serial,
        "all-reduce '" + std::string(algorithm.name) + "' of " + std::to_string(topology.ranks()) +
            " ranks does not keep the order of sums that was asked for; direct exchange does");
  check(options.wire == Wire::f32 || algorithm.narrow,
        "all-reduce '" + std::string(algorithm.name) +
            "' would round at every hop to 16 bits; direct exchange does not");
  check(!options.rotate || options.order == Order::fast,
        "chunks that take dimensions in different orders have no fixed order of sums");
}

void check_memory(const Algorithm& algorithm, const Topology& topology, const Options& options) {
  if (algorithm.peers_memory && algorithm.grid) {
    check(dims_within_hosts(topology, options.dims) > 0,
          "all-reduce '" + std::string(algorithm.name) +
              "' needs ranks of one host in each group of its first dimension");
  } else if (algorithm.peers_memory) {
    check(topology.one_host(),
          "all-reduce '" + std::string(algorithm.name) + "' needs all ranks on one host");
  }
  check(algorithm.plan != shared_by_node || nodes_are_contiguous(topology),
        "all-reduce '" + std::string(algorithm.name) +
            "' sums one NUMA node after the other, and ranks are not numbered node by node: an "
            "order of sums by rank needs another");
}

// Returns the rank at each position. An order of sums is an order of rank numbers, so it fixes the
// positions at any cost.
std::vector<int> places_of(const Topology& topology, const Options& options) {
  if (options.order == Order::fast) {
    return ranks_by_position(topology);
  }
  std::vector<int> ranks(topology.host_of.size());
  std::iota(ranks.begin(), ranks.end(), 0);
  return ranks;
}

}  // namespace

bool Topology::one_host() const {
  return std::ranges::all_of(host_of, [&](int host) { return host == host_of.front(); });
}

bool Topology::same_node(int a, int b) const {
  const auto i = static_cast<std::size_t>(a), k = static_cast<std::size_t>(b);
  return host_of[i] == host_of[k] && (numa_node_of.empty() || numa_node_of[i] == numa_node_of[k]);
}

Topology ranks_on_hosts(int hosts, int ranks_each) {
  Topology topology;
  for (int rank = 0; rank < hosts * ranks_each; ++rank) {
    topology.host_of.push_back(rank / ranks_each);
  }
  return topology;
}

std::int64_t ranks_of_grid(std::span<const int> dims) {
  constexpr std::int64_t most = std::numeric_limits<std::int64_t>::max();
  std::int64_t product = 1;
  for (const int size : dims) {
    product = product > most / size ? most : product * size;
  }
  return product;
}

std::span<const Algorithm> catalog() { return rows; }

const Algorithm& find(std::string_view name) {
  std::string known;
  for (const Algorithm& row : rows) {
    if (row.name == name) {
      return row;
    }
    known.append(known.empty() ? "" : ", ").append(row.name);
  }
  throw Error("no all-reduce is called '" + std::string(name) + "'; use one of " + known);
}

RankPlan make_plan(const Algorithm& algorithm, const Topology& topology, int rank,
                   std::size_t elements, const Options& options) {
  check(rank >= 0 && rank < topology.ranks(), "an all-reduce has no rank " + std::to_string(rank));
  check(options.rings > 0 && options.chunks > 0 && options.window > 0,
        "rings, chunks and window of an all-reduce must be positive");
  check(options.owners >= 0 && options.owners <= topology.ranks(),
        "a shuffle over " + std::to_string(options.owners) + " ranks needs as many; there are " +
            std::to_string(topology.ranks()));
  check(topology.link.empty() || topology.link.size() == topology.host_of.size(),
        "an all-reduce needs the speed of each rank's link, or of none");
  check(topology.numa_node_of.empty() || topology.numa_node_of.size() == topology.host_of.size(),
        "an all-reduce needs the NUMA node of each rank, or of none");
  check_dims(algorithm, topology, options);
  check_order(algorithm, topology, options);
  const std::vector<int> ranks = places_of(topology, options);
  const Topology placed = by_position(topology, ranks);
  check_memory(algorithm, placed, options);
  const auto position = static_cast<int>(std::ranges::find(ranks, rank) - ranks.begin());
  RankPlan plan = algorithm.plan(placed, position, elements, options);
  rename_positions(plan, ranks);
  return plan;
}

std::vector<RankPlan> plans_of_all(const Algorithm& algorithm, const Topology& topology,
                                   std::size_t elements, const Options& options) {
  std::vector<RankPlan> plans;
  plans.reserve(topology.host_of.size());
  for (int rank = 0; rank < topology.ranks(); ++rank) {
    plans.push_back(make_plan(algorithm, topology, rank, elements, options));
  }
  return plans;
}

}  // namespace cnn::allreduce
