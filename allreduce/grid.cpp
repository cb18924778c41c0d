#include <algorithm>
#include <numeric>

#include "allreduce/algorithms.h"
#include "allreduce/writer.h"

namespace cnn::allreduce {
namespace {

using ReduceScatter = void (*)(Writer&, const Group&, std::span<const Range>, bool);
using AllGather = void (*)(Writer&, const Group&, std::span<const Range>);

// The ranks that differ from this one in one coordinate only, for each dimension.
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

struct Stage {
  const Group* group;
  std::vector<Range> slices;
};

// Reduces and scatters in one dimension after the other, each within what the one before left to
// this rank; then gathers on the way back.
void write_chunk(Writer& writer, std::span<const Group* const> order, Range range,
                 std::pair<ReduceScatter, AllGather> by) {
  std::vector<Stage> stages;
  for (const Group* const group : order) {
    stages.push_back({group, slices(range, group->size())});
    by.first(writer, *group, stages.back().slices, group == order.back());
    range = stages.back().slices[group->self];
  }
  for (auto stage = stages.rbegin(); stage != stages.rend(); ++stage) {
    by.second(writer, *stage->group, stage->slices);
  }
}

RankPlan grid(int rank, std::size_t elements, const Options& options,
              std::pair<ReduceScatter, AllGather> by) {
  const std::vector<Group> groups = groups_of(options.dims, rank);
  std::vector<const Group*> order;
  for (const Group& group : groups) {
    if (group.size() > 1) {
      order.push_back(&group);
    }
  }
  return in_chunks(options, {0, elements}, [&](Writer& writer, Range range) {
    write_chunk(writer, order, range, by);
    if (options.rotate && !order.empty()) {
      std::rotate(order.begin(), order.begin() + 1, order.end());
    }
  });
}

}  // namespace

RankPlan grid_of_rings(const Topology& /*topology*/, int rank, std::size_t elements,
                       const Options& options) {
  return grid(rank, elements, options, {ring_reduce_scatter, ring_all_gather});
}

RankPlan grid_of_direct(const Topology& /*topology*/, int rank, std::size_t elements,
                        const Options& options) {
  return grid(rank, elements, options, {direct_reduce_scatter, direct_all_gather});
}

}  // namespace cnn::allreduce
