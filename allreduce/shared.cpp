#include <array>
#include <cstddef>
#include <vector>

#include "allreduce/algorithms.h"
#include "allreduce/writer.h"

namespace cnn::allreduce {
namespace {

// The buffers of a group, this rank's own at its place.
std::vector<Part> buffers_of(const Group& group) {
  std::vector<Part> parts;
  for (std::size_t i = 0; i < group.size(); ++i) {
    parts.push_back(
        i == group.self ? Part{} : Part{Part::At::peer, static_cast<std::size_t>(group.ranks[i])});
  }
  return parts;
}

}  // namespace

// Each rank sums its slice out of all buffers into all buffers: every element is read and written
// once, and nothing is copied.
RankPlan shared(const Topology& topology, int rank, std::size_t elements, const Options& options) {
  const Group group = everyone(topology, rank);
  const std::vector<Part> parts = buffers_of(group);
  return in_chunks(options, {0, elements}, [&](Writer& writer, Range range) {
    if (group.size() > 1 && !range.empty()) {
      writer.meet(group.ranks);
      writer.sum(slice(range, group.self, group.size()), parts, true, group.ranks);
      writer.meet(group.ranks);
    }
  });
}

// A rank reads its slice in all buffers and writes its own buffer alone; nobody else touches that
// slice of any buffer until it is gathered, so that one barrier before is enough.
void shared_reduce_scatter(Writer& writer, const Group& group, std::span<const Range> slices,
                           bool last) {
  writer.meet(group.ranks);
  writer.sum(slices[group.self], buffers_of(group), last);
}

void shared_all_gather(Writer& writer, const Group& group, std::span<const Range> slices) {
  std::vector<int> others = group.ranks;
  others.erase(others.begin() + static_cast<std::ptrdiff_t>(group.self));
  writer.sum(slices[group.self], std::array{Part{}}, false, others);
  writer.meet(group.ranks);
}

}  // namespace cnn::allreduce
