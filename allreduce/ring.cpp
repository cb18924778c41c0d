#include "allreduce/algorithms.h"
#include "allreduce/writer.h"

namespace cnn::allreduce {

void ring_reduce_scatter(Writer& writer, const Group& group, std::span<const Range> slices,
                         bool last) {
  const auto p = static_cast<std::ptrdiff_t>(group.size());
  for (std::ptrdiff_t s = 0; s + 1 < p; ++s) {
    const Range arriving = slices[group.index(-s - 2)];
    writer.send(group.at(1), slices[group.index(-s - 1)]);
    const Part part = writer.receive_beside(group.at(-1), arriving);
    writer.wait();
    writer.add(arriving, part, last && s + 2 == p);
  }
}

void ring_all_gather(Writer& writer, const Group& group, std::span<const Range> slices) {
  const auto p = static_cast<std::ptrdiff_t>(group.size());
  for (std::ptrdiff_t s = 0; s + 1 < p; ++s) {
    writer.send(group.at(1), slices[group.index(-s)]);
    writer.receive(group.at(-1), slices[group.index(-s - 1)]);
    writer.wait();
  }
}

RankPlan ring(const Topology& topology, int rank, std::size_t elements, const Options& options) {
  const Group group = everyone(topology, rank);
  return in_chunks(options, {0, elements}, [&](Writer& writer, Range range) {
    const std::vector<Range> parts = slices(range, group.size());
    ring_reduce_scatter(writer, group, parts, true);
    ring_all_gather(writer, group, parts);
  });
}

}  // namespace cnn::allreduce
