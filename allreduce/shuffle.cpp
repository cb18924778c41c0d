#include "allreduce/algorithms.h"
#include "allreduce/writer.h"

namespace cnn::allreduce {

// Direct exchange in which the first ranks alone own something to sum.
RankPlan shuffle(const Topology& topology, int rank, std::size_t elements, const Options& options) {
  const Group group = everyone(topology, rank);
  const std::size_t owners =
      options.owners > 0 ? static_cast<std::size_t>(options.owners) : group.size();
  return in_chunks(options, {0, elements}, [&](Writer& writer, Range range) {
    std::vector<Range> parts = slices(range, owners);
    parts.resize(group.size(), {range.end, range.end});
    direct_reduce_scatter(writer, group, parts, true);
    direct_all_gather(writer, group, parts);
  });
}

}  // namespace cnn::allreduce
