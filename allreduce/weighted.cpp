#include <algorithm>
#include <cmath>
#include <numeric>

#include "allreduce/algorithms.h"
#include "allreduce/plan_builder.h"

namespace cnn::allreduce {
namespace {

// Returns the share of the buffer that each rank sums. A rank sends the parts that others sum, and
// its sum to all of them: with share s it moves 1 + (n - 2) s buffers in each direction, so a slow
// rank sums less. If t is the minimum time of the slowest link and of all links together, each rank
// gets the share that its link moves in t.
std::vector<double> shares(std::vector<double> link) {
  const auto n = static_cast<double>(link.size());
  if (link.size() < 3) {  // The traffic of two ranks does not depend on their shares.
    return std::vector<double>(link.size(), 1 / n);
  }
  const double total = std::accumulate(link.begin(), link.end(), 0.0);
  const double time = std::max(1 / std::ranges::min(link), 2 * (n - 1) / total);
  for (double& share : link) {
    share = std::max(0.0, (time * share - 1) / (n - 2));
  }
  const double sum = std::accumulate(link.begin(), link.end(), 0.0);
  for (double& share : link) {
    share /= sum;
  }
  return link;
}

std::vector<Range> weighted_slices(Range all, std::span<const double> shares) {
  std::vector<Range> result;
  double sum = 0;
  std::size_t begin = all.begin;
  for (std::size_t k = 0; k < shares.size(); ++k) {
    sum += shares[k];
    const auto wanted =
        static_cast<std::size_t>(std::llround(sum * static_cast<double>(all.size())));
    const std::size_t end =
        k + 1 == shares.size() ? all.end : std::min(all.end, all.begin + wanted);
    result.push_back({begin, end});
    begin = end;
  }
  return result;
}

}  // namespace

RankPlan weighted(const Topology& topology, int rank, std::size_t elements,
                  const Options& options) {
  const Group group = all_ranks(topology, rank);
  const std::vector<double> share =
      shares(topology.link.empty() ? std::vector<double>(group.size(), 1.0) : topology.link);
  return in_chunks(options, {0, elements}, [&](PlanBuilder& builder, Range range) {
    const std::vector<Range> parts = weighted_slices(range, share);
    direct_reduce_scatter(builder, group, parts, true);
    direct_all_gather(builder, group, parts);
  });
}

}  // namespace cnn::allreduce
