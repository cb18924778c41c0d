#include "lms/repeats.h"

#include <algorithm>
#include <utility>

#include "lms/policy.h"
#include "runtime/access.h"
#include "runtime/error.h"

namespace cnn::lms {

Repeats::Repeats(const Request& request)
    : request_(request),
      problem_(lms::planning_problem(request)),
      expander_(problem_),
      root_of_(request.graph.tensors().size()) {
  for (std::size_t r = 0; r < problem_.roots.size(); ++r) {
    root_of_[index_of(problem_.roots[r].tensor)] = r;
  }
  const auto never = static_cast<std::uint32_t>(request.schedule.steps.size());
  std::vector<std::uint32_t> changed(request.graph.tensors().size(), never);
  for (std::uint32_t s = 0; s < never; ++s) {
    for_each_access(request.graph, request.schedule.steps[s].action, [&](const Access& access) {
      if (access.kind == Access::Kind::mutate) {
        std::uint32_t& first = changed[index_of(access.tensor)];
        first = std::min(first, s);
      }
    });
  }
  for (const Node& node : request.graph.nodes()) {
    std::uint32_t first = never;
    for (const TensorId input : node.inputs) {
      first = std::min(first, changed[index_of(input)]);
    }
    updated_.push_back(first);
  }
}

bool Repeats::is_possible(const ExpandedStep& step, const IsAway& is_away) const {
  const Node& node = request_.graph.nodes()[step.id];
  const std::vector<std::uint32_t>& reads = problem_.nodes[step.id].reads;
  return node.op->lane() == Lane::compute && step.given <= updated_[step.id] &&
         std::ranges::none_of(reads, [&](std::uint32_t root) {
           return is_away && is_away(root, StepId{step.given});
         });
}

std::optional<std::vector<Recompute>> Repeats::find(const TensorDecisions& decisions,
                                                    const IsAway& is_away) {
  try {
    std::vector<Recompute> repeats;
    for (const ExpandedStep& step : expander_.expand(decisions).steps) {
      if (!step.again) {
        continue;
      }
      if (step.kind != StepKind::compute || !is_possible(step, is_away)) {
        return std::nullopt;
      }
      repeats.push_back({.node = NodeId{step.id}, .before = StepId{step.given}});
    }
    return repeats;
  } catch (const Error&) {
    return std::nullopt;  // their inputs cannot be recomputed
  }
}

std::vector<Recompute> Repeats::drop_each(const std::vector<std::size_t>& roots,
                                          std::int64_t most) {
  TensorDecisions decisions = kept();
  std::vector<std::size_t> dropped;
  for (const std::size_t root : roots) {
    const Root& r = problem_.roots[root];
    if (r.may_leave && r.may_drop && (most < 0 || std::cmp_less(dropped.size(), most))) {
      decisions[root] = TensorDecision::drop;
      dropped.push_back(root);
    }
  }
  std::optional<std::vector<Recompute>> all = find(decisions);
  if (all) {
    return *all;
  }
  decisions = kept();
  std::vector<Recompute> repeats;
  for (const std::size_t root : dropped) {
    decisions[root] = TensorDecision::drop;
    if (std::optional<std::vector<Recompute>> found = find(decisions)) {
      repeats = std::move(*found);
    } else {
      decisions[root] = TensorDecision::keep;
    }
  }
  return repeats;
}

std::optional<std::uint32_t> Repeats::last_repeat(std::uint32_t node) const {
  const bool possible =
      problem_.nodes[node].may_repeat && request_.graph.nodes()[node].op->lane() == Lane::compute;
  return possible ? std::optional(updated_[node]) : std::nullopt;
}

double Repeats::seconds(const std::vector<Recompute>& repeats) const {
  double seconds = 0;
  for (const Recompute& repeat : repeats) {
    seconds += problem_.nodes[index_of(repeat.node)].seconds;
  }
  return seconds;
}

}  // namespace cnn::lms
