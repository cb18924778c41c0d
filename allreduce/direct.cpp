#include "allreduce/algorithms.h"
#include "allreduce/plan_builder.h"

namespace cnn::allreduce {

// Posts messages in shifted order, so that not all ranks send to the same one at once.
void direct_reduce_scatter(PlanBuilder& builder, const Group& group, std::span<const Range> slices,
                           bool last) {
  const auto p = static_cast<std::ptrdiff_t>(group.size());
  if (p == 1) {
    return;
  }
  builder.round_own(slices[group.self]);
  std::vector<Operand> operands(group.size());
  for (std::ptrdiff_t s = 1; s < p; ++s) {
    builder.send(group.at(s), slices[group.index(s)]);
    operands[group.index(-s)] = builder.receive_to_scratch(group.at(-s), slices[group.self]);
  }
  builder.wait();
  builder.sum(slices[group.self], operands, last);
}

void direct_all_gather(PlanBuilder& builder, const Group& group, std::span<const Range> slices) {
  const auto p = static_cast<std::ptrdiff_t>(group.size());
  for (std::ptrdiff_t s = 1; s < p; ++s) {
    builder.send(group.at(s), slices[group.self]);
    builder.receive(group.at(-s), slices[group.index(-s)]);
  }
  builder.wait();
}

RankPlan direct(const Topology& topology, int rank, std::size_t elements, const Options& options) {
  const Group group = all_ranks(topology, rank);
  return in_chunks(options, {0, elements}, [&](PlanBuilder& builder, Range range) {
    const std::vector<Range> parts = slices(range, group.size());
    direct_reduce_scatter(builder, group, parts, true);
    direct_all_gather(builder, group, parts);
  });
}

}  // namespace cnn::allreduce
