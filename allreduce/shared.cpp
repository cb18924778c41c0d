#include <array>
#include <cstddef>
#include <vector>

#include "allreduce/algorithms.h"
#include "allreduce/plan_builder.h"

namespace cnn::allreduce {
namespace {

// Returns the buffers of a group as operands, this rank's own at its place.
std::vector<Operand> buffers_of(const Group& group) {
  std::vector<Operand> operands;
  for (std::size_t i = 0; i < group.size(); ++i) {
    operands.push_back(i == group.self ? Operand{}
                                       : Operand{Operand::Source::peer_buffer,
                                                 static_cast<std::size_t>(group.ranks[i])});
  }
  return operands;
}

}  // namespace

// Each rank sums its slice of all buffers and writes it to all buffers. Every element is read and
// written once, and nothing is copied.
RankPlan shared(const Topology& topology, int rank, std::size_t elements, const Options& options) {
  const Group group = all_ranks(topology, rank);
  const std::vector<Operand> operands = buffers_of(group);
  return in_chunks(options, {0, elements}, [&](PlanBuilder& builder, Range range) {
    if (group.size() > 1 && !range.empty()) {
      builder.barrier(group.ranks);
      builder.sum(slice(range, group.self, group.size()), operands, true, group.ranks);
      builder.barrier(group.ranks);
    }
  });
}

// A rank reads its slice of all buffers and writes only its own buffer. No other rank touches that
// slice of any buffer before the all-gather, so one barrier in front is enough. Peers add all
// slices of this rank's buffer, so all are rounded.
void shared_reduce_scatter(PlanBuilder& builder, const Group& group, std::span<const Range> slices,
                           bool last) {
  builder.round_own({slices.front().begin, slices.back().end});
  builder.barrier(group.ranks);
  builder.sum(slices[group.self], buffers_of(group), last);
}

void shared_all_gather(PlanBuilder& builder, const Group& group, std::span<const Range> slices) {
  std::vector<int> others = group.ranks;
  others.erase(others.begin() + static_cast<std::ptrdiff_t>(group.self));
  builder.sum(slices[group.self], std::array{Operand{}}, false, others);
  builder.barrier(group.ranks);
}

}  // namespace cnn::allreduce
