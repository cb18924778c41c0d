#include "allreduce/algorithms.h"
#include "allreduce/plan_builder.h"

namespace cnn::allreduce {

// Direct exchange in which only the first ranks sum, like a sharded parameter server.
RankPlan shuffle(const Topology& topology, int rank, std::size_t elements, const Options& options) {
  const Group group = all_ranks(topology, rank);
  const std::size_t owners =
      options.owners > 0 ? static_cast<std::size_t>(options.owners) : group.size();
  return in_chunks(options, {0, elements}, [&](PlanBuilder& builder, Range range) {
    std::vector<Range> parts = slices(range, owners);
    parts.resize(group.size(), {range.end, range.end});
    direct_reduce_scatter(builder, group, parts, true);
    direct_all_gather(builder, group, parts);
  });
}

}  // namespace cnn::allreduce
