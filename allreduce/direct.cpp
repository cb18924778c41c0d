#include "allreduce/algorithms.h"
#include "allreduce/writer.h"

namespace cnn::allreduce {

// Messages are posted in shifted order, so that no receiver is hit by all at once.
void direct_reduce_scatter(Writer& writer, const Group& group, std::span<const Range> slices,
                           bool last) {
  const auto p = static_cast<std::ptrdiff_t>(group.size());
  if (p == 1) {
    return;
  }
  std::vector<Part> parts(group.size());
  for (std::ptrdiff_t s = 1; s < p; ++s) {
    writer.send(group.at(s), slices[group.index(s)]);
    parts[group.index(-s)] = writer.receive_beside(group.at(-s), slices[group.self]);
  }
  writer.wait();
  writer.sum(slices[group.self], parts, last);
}

void direct_all_gather(Writer& writer, const Group& group, std::span<const Range> slices) {
  const auto p = static_cast<std::ptrdiff_t>(group.size());
  for (std::ptrdiff_t s = 1; s < p; ++s) {
    writer.send(group.at(s), slices[group.self]);
    writer.receive(group.at(-s), slices[group.index(-s)]);
  }
  writer.wait();
}

RankPlan direct(const Topology& topology, int rank, std::size_t elements, const Options& options) {
  const Group group = everyone(topology, rank);
  return in_chunks(options, {0, elements}, [&](Writer& writer, Range range) {
    const std::vector<Range> parts = slices(range, group.size());
    direct_reduce_scatter(writer, group, parts, true);
    direct_all_gather(writer, group, parts);
  });
}

}  // namespace cnn::allreduce
