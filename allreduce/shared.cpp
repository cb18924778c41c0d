#include "allreduce/algorithms.h"
#include "allreduce/writer.h"

namespace cnn::allreduce {

// Each rank sums its slice out of all buffers into all buffers: every element is read and written
// once, and nothing is copied.
RankPlan shared(const Topology& topology, int rank, std::size_t elements, const Options& options) {
  const Group group = everyone(topology, rank);
  std::vector<Part> parts;
  for (const int peer : group.ranks) {
    parts.push_back(peer == rank ? Part{} : Part{Part::At::peer, static_cast<std::size_t>(peer)});
  }
  return in_chunks(options, {0, elements}, [&](Writer& writer, Range range) {
    if (group.size() > 1 && !range.empty()) {
      writer.meet(group.ranks);
      writer.sum(slice(range, group.self, group.size()), parts, true, group.ranks);
      writer.meet(group.ranks);
    }
  });
}

}  // namespace cnn::allreduce
