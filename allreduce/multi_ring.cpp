#include <algorithm>

#include "allreduce/algorithms.h"
#include "allreduce/plan_builder.h"

namespace cnn::allreduce {
namespace {

// Returns all ranks with those of each host rotated by q, so that another one of them is the link
// to the next host, over its own network card if it has one.
Group turned(const Topology& topology, int rank, int q) {
  Group group = all_ranks(topology, rank);
  for (auto first = group.ranks.begin(); first != group.ranks.end();) {
    const int host = topology.host_of[static_cast<std::size_t>(*first)];
    const auto other = [&](int r) { return topology.host_of[static_cast<std::size_t>(r)] != host; };
    const auto last = std::find_if(first, group.ranks.end(), other);
    std::rotate(first, first + q % (last - first), last);
    first = last;
  }
  group.self = static_cast<std::size_t>(std::ranges::find(group.ranks, rank) - group.ranks.begin());
  return group;
}

}  // namespace

RankPlan multi_ring(const Topology& topology, int rank, std::size_t elements,
                    const Options& options) {
  const auto chunks = static_cast<std::size_t>(options.chunks);
  const auto rings = static_cast<std::size_t>(options.rings);
  const std::vector<Range> of_rings = slices({0, elements}, rings);
  PlanBuilder builder(options);
  for (std::size_t chunk = 0; chunk < chunks; ++chunk) {  // So all rings advance together.
    for (std::size_t q = 0; q < rings; ++q) {
      const Group group = turned(topology, rank, static_cast<int>(q));
      const std::vector<Range> parts = slices(slice(of_rings[q], chunk, chunks), group.size());
      builder.begin_chunk();
      ring_reduce_scatter(builder, group, parts, true);
      ring_all_gather(builder, group, parts);
    }
  }
  return std::move(builder).finish();
}

}  // namespace cnn::allreduce
