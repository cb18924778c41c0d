#include "allreduce/algorithms.h"
#include "allreduce/folding.h"
#include "allreduce/plan_builder.h"

namespace cnn::allreduce {
namespace {

// Recursive doubling: exchanges whole buffers at the distances 1, 2, 4, ..., so that the sums are
// those of a balanced tree.
void double_distances(PlanBuilder& builder, const Folding& folding, int index, Range range) {
  for (int distance = 1; distance < folding.power; distance *= 2) {
    const int partner = folding.rank(index ^ distance);
    builder.send(partner, range);
    const Operand received = builder.receive_to_scratch(partner, range);
    builder.wait();
    builder.add(range, received, 2 * distance == folding.power);
  }
}

}  // namespace

RankPlan doubling(const Topology& topology, int rank, std::size_t elements,
                  const Options& options) {
  const Folding folding(topology.ranks());
  return in_chunks(options, {0, elements}, [&](PlanBuilder& builder, Range range) {
    if (!folding.goes_on(rank)) {
      builder.send(rank - 1, range);
      builder.wait();
      builder.receive(rank - 1, range);
      builder.wait();
      return;
    }
    if (folding.in_pair(rank)) {
      const Operand received = builder.receive_to_scratch(rank + 1, range);
      builder.wait();
      builder.add(range, received, false);
    }
    double_distances(builder, folding, folding.index(rank), range);
    if (folding.in_pair(rank)) {
      builder.send(rank + 1, range);
      builder.wait();
    }
  });
}

}  // namespace cnn::allreduce
