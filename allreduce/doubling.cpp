#include "allreduce/algorithms.h"
#include "allreduce/folding.h"
#include "allreduce/writer.h"

namespace cnn::allreduce {
namespace {

// Whole buffers are exchanged over distances 1, 2, 4, ...: the sums are those of a balanced tree.
void double_distances(Writer& writer, const Folding& folding, int index, Range range) {
  for (int distance = 1; distance < folding.power; distance *= 2) {
    const int partner = folding.rank(index ^ distance);
    writer.send(partner, range);
    const Part part = writer.receive_beside(partner, range);
    writer.wait();
    writer.add(range, part, 2 * distance == folding.power);
  }
}

}  // namespace

RankPlan doubling(const Topology& topology, int rank, std::size_t elements,
                  const Options& options) {
  const Folding folding(topology.ranks());
  return in_chunks(options, {0, elements}, [&](Writer& writer, Range range) {
    if (!folding.goes_on(rank)) {
      writer.send(rank - 1, range);
      writer.wait();
      writer.receive(rank - 1, range);
      writer.wait();
      return;
    }
    if (folding.in_pair(rank)) {
      const Part part = writer.receive_beside(rank + 1, range);
      writer.wait();
      writer.add(range, part, false);
    }
    double_distances(writer, folding, folding.index(rank), range);
    if (folding.in_pair(rank)) {
      writer.send(rank + 1, range);
      writer.wait();
    }
  });
}

}  // namespace cnn::allreduce
