#include "allreduce/algorithms.h"
#include "allreduce/plan_builder.h"

namespace cnn::allreduce {

void ring_reduce_scatter(PlanBuilder& builder, const Group& group, std::span<const Range> slices,
                         bool last) {
  const auto p = static_cast<std::ptrdiff_t>(group.size());
  for (std::ptrdiff_t s = 0; s + 1 < p; ++s) {
    const Range arriving = slices[group.index(-s - 2)];
    builder.send(group.at(1), slices[group.index(-s - 1)]);
    const Operand received = builder.receive_to_scratch(group.at(-1), arriving);
    builder.wait();
    builder.add(arriving, received, last && s + 2 == p);
  }
}

void ring_all_gather(PlanBuilder& builder, const Group& group, std::span<const Range> slices) {
  const auto p = static_cast<std::ptrdiff_t>(group.size());
  for (std::ptrdiff_t s = 0; s + 1 < p; ++s) {
    builder.send(group.at(1), slices[group.index(-s)]);
    builder.receive(group.at(-1), slices[group.index(-s - 1)]);
    builder.wait();
  }
}

RankPlan ring(const Topology& topology, int rank, std::size_t elements, const Options& options) {
  const Group group = all_ranks(topology, rank);
  return in_chunks(options, {0, elements}, [&](PlanBuilder& builder, Range range) {
    const std::vector<Range> parts = slices(range, group.size());
    ring_reduce_scatter(builder, group, parts, true);
    ring_all_gather(builder, group, parts);
  });
}

}  // namespace cnn::allreduce
