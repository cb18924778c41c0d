#include "allreduce/symmetry.h"

#include <algorithm>
#include <bit>
#include <map>

#include "allreduce/rank_order.h"

namespace cnn::allreduce {
namespace {

// Returns the dims of the torus on which the algorithm's plans are translation invariant.
std::optional<std::vector<int>> dims_of(const Algorithm& algorithm, const Options& options,
                                        int ranks, int each) {
  switch (algorithm.invariance) {
    case Invariance::none:
      return std::nullopt;
    case Invariance::rotation:
      return std::vector<int>{each, ranks / each};
    case Invariance::grid:
      return options.dims;
    case Invariance::bits:
      break;
  }
  const auto count = static_cast<unsigned>(ranks);
  return std::has_single_bit(count)
             ? std::optional(std::vector<int>(static_cast<std::size_t>(std::countr_zero(count)), 2))
             : std::nullopt;
}

// Splits the dimension within which a host ends. Returns nothing if it cannot be split there.
std::optional<std::vector<int>> cut_at_host(const std::vector<int>& dims, int each) {
  std::vector<int> cut;
  int stride = 1;
  for (const int size : dims) {
    const int inside = each / stride;
    if (stride < each && each < stride * size) {
      if (each % stride != 0 || size % inside != 0) {
        return std::nullopt;
      }
      cut.insert(cut.end(), {inside, size / inside});
    } else {
      cut.push_back(size);
    }
    stride *= size;
  }
  return cut;
}

// Returns whether the ranks of every host have the same NUMA nodes as those of host 0.
bool has_equal_nodes(const Topology& topology, int each) {
  for (std::size_t rank = 0; rank < topology.numa_node_of.size(); ++rank) {
    if (topology.numa_node_of[rank] !=
        topology.numa_node_of[rank % static_cast<std::size_t>(each)]) {
      return false;
    }
  }
  return nodes_are_contiguous(topology);
}

}  // namespace

int Symmetry::moved(int from, int to) const {
  int result = 0, stride = 1;
  for (const int size : dims_) {
    int at = to / stride % size;
    if (stride >= each_) {
      at = (at - from / stride % size + size) % size;
    }
    result += at * stride;
    stride *= size;
  }
  return result;
}

std::optional<int> ranks_of_each_host(const Topology& topology) {
  std::map<int, int> ranks;
  for (const int host : topology.host_of) {
    ++ranks[host];
  }
  const int first = ranks.begin()->second;
  const bool equal =
      std::ranges::all_of(ranks, [first](const auto& host) { return host.second == first; });
  return equal ? std::optional(first) : std::nullopt;
}

std::optional<Symmetry> symmetry_of(const Algorithm& algorithm, const Topology& topology,
                                    const Options& options) {
  const std::optional<int> each = ranks_of_each_host(topology);
  if (!each || !topology.link.empty() || !std::ranges::is_sorted(topology.host_of) ||
      !has_equal_nodes(topology, *each)) {
    return std::nullopt;
  }
  const auto dims = dims_of(algorithm, options, topology.ranks(), *each);
  const auto cut = dims ? cut_at_host(*dims, *each) : std::nullopt;
  return cut ? std::optional(Symmetry(*cut, *each)) : std::nullopt;
}

}  // namespace cnn::allreduce
