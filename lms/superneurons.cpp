// L. Wang et al., "SuperNeurons: Dynamic GPU Memory Management for Training Deep Neural Networks",
// 2018. Cheap outputs of pools, activations, norms and sums are dropped and recomputed from the
// outputs of convolutions: a segment between two convolutions once, if its tensors together take no
// more than the step's largest operation, else for each gradient anew. The outputs of convolutions
// form a cache: the least recently used leave for the host when bytes are missing, and return with
// the backward step of the previous convolution. The policy does not choose convolution kernels.

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "lms/edit.h"
#include "lms/eviction.h"
#include "lms/live_bytes.h"
#include "lms/policies.h"
#include "lms/repeats.h"
#include "lms/stash.h"

namespace cnn::lms {
namespace {

std::string_view op_at(const Request& request, StepId step) {
  const auto* compute = std::get_if<Compute>(&request.schedule.steps[index_of(step)].action);
  return compute == nullptr ? std::string_view()
                            : request.graph.nodes()[index_of(compute->node)].op->name();
}

bool is_checkpoint(const Request& request, const Stashed& tensor) {
  const std::string_view op = op_at(request, tensor.made);
  return op == "conv" || op == "fused_conv" || op == "dense";
}

// Returns the bytes of the largest operation: operands, results and workspace.
std::size_t largest_need(const PlanningProblem& problem) {
  std::size_t largest = 0;
  for (const ProblemNode& node : problem.nodes) {
    std::size_t bytes = node.workspace;
    for (const auto* roots : {&node.reads, &node.writes}) {
      for (const std::uint32_t root : *roots) {
        bytes += problem.roots[root].bytes;
      }
    }
    largest = std::max(largest, bytes);
  }
  return largest;
}

using Segment = std::vector<std::size_t>;  // dropped roots between two checkpoints

std::vector<Segment> segments_of(const Request& request, const Repeats& repeats) {
  std::vector<Segment> segments(1);
  for (const Stashed& tensor : candidates(request)) {
    const std::size_t root = repeats.root(tensor.tensor);
    if (is_checkpoint(request, tensor)) {
      segments.emplace_back();
    } else if (repeats.problem().roots[root].may_drop) {
      segments.back().push_back(root);
    }
  }
  return segments;
}

// Returns the recomputations; segments that cannot be recomputed are kept.
std::vector<Recompute> repeats_of(const Request& request) {
  Repeats repeats(request);
  const std::size_t most = largest_need(repeats.problem());
  TensorDecisions decisions = repeats.kept();
  std::vector<Recompute> found;
  for (const Segment& segment : segments_of(request, repeats)) {
    std::size_t bytes = 0;
    for (const std::size_t root : segment) {
      bytes += repeats.problem().roots[root].bytes;
    }
    const TensorDecisions before = decisions;
    for (const std::size_t root : segment) {
      decisions[root] = bytes <= most ? TensorDecision::drop : TensorDecision::drop_often;
    }
    if (std::optional<std::vector<Recompute>> all = repeats.find(decisions)) {
      found = std::move(*all);
    } else {
      decisions = before;
    }
  }
  return found;
}

// Starts the copy back with the backward step of the nearest convolution before the use.
StepId prefetched_from(const Request& request, const Eviction& eviction) {
  for (std::size_t s = index_of(eviction.back_for); s-- > index_of(eviction.freed_for) + 1;) {
    const StepId step{static_cast<std::uint32_t>(s)};
    if (op_at(request, step).starts_with("conv_backward")) {
      return std::max(compute_before(request.schedule, step), eviction.freed_for);
    }
  }
  return compute_before(request.schedule, eviction.back_for);
}

// Plans like the tensor cache of a device of so many bytes.
Plan cached_within(const Request& request, std::size_t bytes) {
  std::vector<Stashed> checkpoints = candidates(request);
  std::erase_if(checkpoints,
                [&](const Stashed& tensor) { return !is_checkpoint(request, tensor); });
  std::vector<Decision> decisions;
  for (const Eviction& eviction :
       replay_allocator(request, bytes, checkpoints, EvictionRule::oldest)) {
    decisions.emplace_back(Swap{.tensor = eviction.tensor->tensor,
                                .out_behind = eviction.last_used,
                                .back_before = eviction.back_for,
                                .not_before = prefetched_from(request, eviction),
                                .free_before = eviction.freed_for,
                                .on_host = eviction.again});
  }
  return {.schedule = edit(request.schedule, decisions, request.options.sync_mode), .notes = {}};
}

}  // namespace

// The cache counts bytes and ignores gaps between tensors: the replay repeats with fewer bytes if
// its plan does not fit.
Plan superneurons(const Request& request) {
  if (fits(request, request.schedule)) {
    return none(request);
  }
  std::vector<Decision> repeated;
  if (request.options.recompute != Recomputation::off) {
    const std::vector<Recompute> repeats = repeats_of(request);
    repeated.assign(repeats.begin(), repeats.end());
  }
  Plan first{.schedule = edit(request.schedule, repeated), .notes = {}};
  if (request.budget.swap_bytes() == 0 || fits(request, first.schedule)) {
    return first;
  }
  // Nothing runs again before the backward pass, so it begins at the same step.
  const Request cached{.graph = request.graph,
                       .specs = request.specs,
                       .schedule = first.schedule,
                       .backward = request.backward,
                       .costs = request.costs,
                       .budget = request.budget,
                       .variable_bytes = request.variable_bytes,
                       .options = request.options};
  constexpr std::size_t part = 64, most = 16;
  const std::size_t device = request.budget.device;
  std::optional<Plan> largest;
  for (std::size_t parts = 0; parts <= most; parts = parts == 0 ? 1 : 2 * parts) {
    Plan plan = cached_within(cached, device - device / part * parts);
    if (fits(request, plan.schedule)) {
      return plan;
    }
    if (!largest) {
      largest = std::move(plan);
    }
  }
  return std::move(*largest);
}

}  // namespace cnn::lms
