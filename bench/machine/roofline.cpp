#include "bench/machine/roofline.h"

#include <algorithm>
#include <fmt/format.h>

#include "bench/machine/step_costs.h"

namespace cnn::bench {

double seconds_to_move(double bytes, const Ceilings& ceilings) {
  double seconds = 0;
  double inside = 0;  // bytes that smaller caches hold
  for (const CacheCeiling& cache : ceilings.caches) {
    if (cache.bytes > inside && bytes > inside) {
      seconds += (std::min(bytes, cache.bytes) - inside) / cache.bytes_per_second;
      inside = cache.bytes;
    }
  }
  return seconds + std::max(bytes - inside, 0.0) / ceilings.bytes_per_second;
}

double roofline_seconds(const StepPlan& plan, const Ceilings& ceilings) {
  double seconds = 0;
  const Graph& graph = *plan.graph;
  for (std::size_t i = 0; i < graph.nodes().size(); ++i) {
    const Node& node = graph.nodes()[i];
    const double flops = needed_flops(graph, node, &plan.specs[i]);
    seconds += std::max(flops / ceilings.flops_per_second,
                        seconds_to_move(operand_bytes(graph, node), ceilings));
  }
  return seconds;
}

double share_of_operations(const StepPlan& plan) {
  double needed = 0, counted = 0;
  for (std::size_t i = 0; i < plan.specs.size(); ++i) {
    const Node& node = plan.graph->nodes()[i];
    needed += needed_flops(*plan.graph, node, &plan.specs[i]);
    counted += needed_flops(*plan.graph, node);
  }
  return counted == 0 ? 1 : needed / counted;
}

Roofline compare_with_roofline(const StepPlan& plan, const Ceilings& ceilings,
                               const TimedSteps& steps) {
  constexpr double giga = 1e-9;
  Roofline result{.seconds = roofline_seconds(plan, ceilings)};
  result.percent = 100 * result.seconds / steps.median_seconds;
  std::string caches;
  for (const CacheCeiling& cache : ceilings.caches) {
    if (cache.bytes > 0) {
      caches += fmt::format("{}{:.1f} in {:.1f} MiB of cache", caches.empty() ? "" : ", ",
                            cache.bytes_per_second * giga, cache.bytes / (1024 * 1024));
    }
  }
  result.lines.push_back(fmt::format(
      "speed: median step {:.4f} s, {:.1f} % of the roofline ({:.1f} images/s at {:.0f} GFLOP/s "
      "and {:.1f} GB/s{}, measured on this device after the last step)",
      steps.median_seconds, result.percent, steps.batch / result.seconds,
      ceilings.flops_per_second * giga, ceilings.bytes_per_second * giga,
      caches.empty() ? "" : " (" + caches + ")"));
  if (result.percent > 100) {
    result.lines.emplace_back(
        "speed: more than 100 %: the device was slower while the ceilings were measured than in "
        "the steps, or the network runs faster than a large product and plain copies do");
  }
  if (const double share = share_of_operations(plan); share < 1) {
    result.lines.push_back(fmt::format(
        "speed: Winograd's algorithm needs {:.0f} % of the operations that the layers define; the "
        "roofline counts what is needed (--nowinograd_nonfused computes them all)",
        100 * share));
  }
  return result;
}

}  // namespace cnn::bench
