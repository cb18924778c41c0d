#include <algorithm>
#include <numeric>

#include "allreduce/algorithms.h"
#include "allreduce/plan_builder.h"
#include "allreduce/rank_order.h"

namespace cnn::allreduce {
namespace {

using ReduceScatter = void (*)(PlanBuilder&, const Group&, std::span<const Range>, bool);
using AllGather = void (*)(PlanBuilder&, const Group&, std::span<const Range>);

// Returns, for each dimension, the ranks that differ from this one in that coordinate only.
std::vector<Group> groups_of(const std::vector<int>& dims, int rank) {
  std::vector<Group> groups;
  int stride = 1;
  for (const int size : dims) {
    Group group;
    const int self = rank / stride % size;
    group.self = static_cast<std::size_t>(self);
    for (int i = 0; i < size; ++i) {
      group.ranks.push_back(rank + (i - self) * stride);
    }
    groups.push_back(std::move(group));
    stride *= size;
  }
  return groups;
}

// The collectives of a dimension.
struct Exchange {
  ReduceScatter reduce_scatter = nullptr;
  AllGather all_gather = nullptr;
};
constexpr Exchange by_rings{ring_reduce_scatter, ring_all_gather};
constexpr Exchange by_direct{direct_reduce_scatter, direct_all_gather};
constexpr Exchange by_memory{shared_reduce_scatter, shared_all_gather};

// One dimension of a grid from the view of this rank.
struct Dimension {
  const Group* group = nullptr;
  Exchange exchange;
};

// A dimension and the slices into which its reduce-scatter cuts the range.
struct Stage {
  const Dimension* dimension;
  std::vector<Range> slices;
};

// Reduce-scatters in one dimension after another, each within the slice that the previous one has
// left to this rank, then all-gathers in the reverse order.
void write_chunk(PlanBuilder& builder, std::span<const Dimension> dimensions, Range range) {
  std::vector<Stage> stages;
  for (const Dimension& dimension : dimensions) {
    const Group& group = *dimension.group;
    stages.push_back({&dimension, slices(range, group.size())});
    dimension.exchange.reduce_scatter(builder, group, stages.back().slices,
                                      &dimension == &dimensions.back());
    range = stages.back().slices[group.self];
  }
  for (auto stage = stages.rbegin(); stage != stages.rend(); ++stage) {
    stage->dimension->exchange.all_gather(builder, *stage->dimension->group, stage->slices);
  }
}

// The first `inside` dimensions use shared memory.
RankPlan grid(int rank, std::size_t elements, const Options& options, const Exchange& outside,
              std::size_t inside = 0) {
  const std::vector<Group> groups = groups_of(options.dims, rank);
  std::vector<Dimension> order;
  for (std::size_t i = 0; i < groups.size(); ++i) {
    if (groups[i].size() > 1) {
      order.push_back({&groups[i], i < inside ? by_memory : outside});
    }
  }
  return in_chunks(options, {0, elements}, [&](PlanBuilder& builder, Range range) {
    write_chunk(builder, order, range);
    if (options.rotate && !order.empty()) {
      std::rotate(order.begin(), order.begin() + 1, order.end());
    }
  });
}

}  // namespace

RankPlan grid_of_rings(const Topology& /*topology*/, int rank, std::size_t elements,
                       const Options& options) {
  return grid(rank, elements, options, by_rings);
}

RankPlan grid_of_direct(const Topology& /*topology*/, int rank, std::size_t elements,
                        const Options& options) {
  return grid(rank, elements, options, by_direct);
}

RankPlan shared_rings(const Topology& topology, int rank, std::size_t elements,
                      const Options& options) {
  return grid(rank, elements, options, by_rings, dims_within_hosts(topology, options.dims));
}

RankPlan shared_direct(const Topology& topology, int rank, std::size_t elements,
                       const Options& options) {
  return grid(rank, elements, options, by_direct, dims_within_hosts(topology, options.dims));
}

}  // namespace cnn::allreduce
