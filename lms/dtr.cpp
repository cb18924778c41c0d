// M. Kirisame et al., "Dynamic Tensor Rematerialization", 2021, with its heuristic h_DTR. If a
// result does not fit, it evicts the tensor with the lowest recompute cost per byte and per time
// since its last access; the cost includes evicted tensors around it. An evicted tensor is
// recomputed when it is accessed. The original decides online; here the known step is replayed once
// and becomes a plan.

#include <algorithm>
#include <cstdint>
#include <limits>
#include <optional>
#include <utility>
#include <vector>

#include "lms/edit.h"
#include "lms/live_bytes.h"
#include "lms/policies.h"
#include "lms/repeats.h"

namespace cnn::lms {
namespace {

// Dependencies between roots of the planning problem.
struct Dependencies {
  std::vector<std::vector<std::uint32_t>> sources, dependents;  // by root
  std::vector<double> seconds;                                  // by root: of its makers
};

Dependencies dependencies_of(const PlanningProblem& problem) {
  const std::size_t count = problem.roots.size();
  Dependencies result{.sources = std::vector<std::vector<std::uint32_t>>(count),
                      .dependents = std::vector<std::vector<std::uint32_t>>(count),
                      .seconds = std::vector<double>(count)};
  for (std::uint32_t root = 0; root < count; ++root) {
    for (const std::uint32_t maker : problem.roots[root].makers) {
      result.seconds[root] += problem.nodes[maker].seconds;
      for (const std::uint32_t source : problem.nodes[maker].reads) {
        if (source != root) {
          result.sources[root].push_back(source);
          result.dependents[source].push_back(root);
        }
      }
    }
  }
  return result;
}

// Returns, by root, the last step of the schedule that uses it.
std::vector<std::uint32_t> last_uses(const PlanningProblem& problem) {
  std::vector<std::uint32_t> last(problem.roots.size());
  for (std::uint32_t s = 0; s < problem.steps.size(); ++s) {
    const ProblemStep& step = problem.steps[s];
    if (step.kind != StepKind::compute) {
      last[step.id] = s;
      continue;
    }
    for (const auto* roots : {&problem.nodes[step.id].reads, &problem.nodes[step.id].writes}) {
      for (const std::uint32_t root : *roots) {
        last[root] = s;
      }
    }
  }
  return last;
}

// Returns, by root, the last step before which it can be recomputed; -1: never.
std::vector<std::int64_t> repeatable_until(const Repeats& repeats, const Dependencies& dependencies,
                                           const std::vector<std::uint32_t>& last_use) {
  const PlanningProblem& problem = repeats.problem();
  std::vector<std::int64_t> until(problem.roots.size(), -1);
  // Sources are visited before their dependents.
  for (const ProblemStep& step : problem.steps) {
    if (step.kind != StepKind::compute) {
      continue;
    }
    for (const std::uint32_t root : problem.nodes[step.id].writes) {
      std::int64_t last = std::numeric_limits<std::int64_t>::max();
      for (const std::uint32_t maker : problem.roots[root].makers) {
        const std::optional<std::uint32_t> own = repeats.last_repeat(maker);
        last = std::min<std::int64_t>(last, own ? std::int64_t{*own} : -1);
      }
      for (const std::uint32_t source : dependencies.sources[root]) {
        last = std::min(last, std::max<std::int64_t>(last_use[source], until[source]));
      }
      until[root] = last;
    }
  }
  return until;
}

// Simulates the step with an allocator of so many bytes.
class Rematerialization {
 public:
  Rematerialization(const Repeats& repeats, std::size_t bytes)
      : problem_(repeats.problem()),
        bytes_(bytes),
        dependencies_(dependencies_of(problem_)),
        last_use_(last_uses(problem_)),
        until_(repeatable_until(repeats, dependencies_, last_use_)),
        roots_(problem_.roots.size()) {}

  // Returns nothing if the step would never end, with too few bytes.
  std::optional<std::vector<Recompute>> run() {
    for (given_ = 0; given_ < problem_.steps.size(); ++given_) {
      const ProblemStep& step = problem_.steps[given_];
      if (step.kind == StepKind::compute) {
        access(step.id);
      } else {
        require(step.id);
        touch(step.id);
      }
      if (repeats_.size() > max_repeats()) {
        return std::nullopt;
      }
      release();
    }
    return std::move(repeats_);
  }

 private:
  struct State {
    bool resident = false;
    bool evicted = false;  // and needed again
    int pins = 0;
    double accessed = 0;  // last access, in seconds of the step
  };

  std::size_t max_repeats() const {
    constexpr std::size_t thrashing = 20;  // times all nodes
    return thrashing * problem_.nodes.size();
  }

  void touch(std::uint32_t root) { roots_[root].accessed = now_; }

  // Runs a node whose operands may be evicted.
  void access(std::uint32_t node) {
    const std::vector<std::uint32_t>& reads = problem_.nodes[node].reads;
    for (const std::uint32_t root : reads) {
      ++roots_[root].pins;
    }
    for (const std::uint32_t root : reads) {
      require(root);
    }
    run(node);
    for (const std::uint32_t root : reads) {
      --roots_[root].pins;
    }
  }

  void require(std::uint32_t root) {
    if (roots_[root].resident || repeats_.size() > max_repeats()) {
      return;
    }
    if (problem_.roots[root].makers.empty()) {  // an input arrives
      make_room(problem_.roots[root].bytes);
      settle(root);
      return;
    }
    for (const std::uint32_t maker : problem_.roots[root].makers) {
      access(maker);
      repeats_.push_back({.node = NodeId{maker}, .before = StepId{given_}});
    }
  }

  void run(std::uint32_t node) {
    const ProblemNode& made = problem_.nodes[node];
    std::size_t bytes = made.workspace;
    for (const std::uint32_t root : made.writes) {
      ++roots_[root].pins;
      bytes += roots_[root].resident ? 0 : problem_.roots[root].bytes;
    }
    make_room(bytes - std::min(bytes, reused_in_place(made)));
    now_ += made.seconds;
    for (const auto* roots : {&made.reads, &made.writes}) {
      std::ranges::for_each(*roots, [&](std::uint32_t root) { touch(root); });
    }
    for (const std::uint32_t root : made.writes) {
      settle(root);
      --roots_[root].pins;
    }
  }

  // Returns the bytes of ending inputs that outputs take over.
  std::size_t reused_in_place(const ProblemNode& node) const {
    std::size_t bytes = 0;
    std::vector<std::uint32_t> taken, given;
    for (const auto& [from, to] : node.may_reuse) {
      const bool is_new = std::ranges::find(taken, from) == taken.end() &&
                          std::ranges::find(given, to) == given.end();
      if (is_new && last_use_[from] == given_ && !roots_[to].resident) {
        taken.push_back(from);
        given.push_back(to);
        bytes += std::min(problem_.roots[from].bytes, problem_.roots[to].bytes);
      }
    }
    return bytes;
  }

  void settle(std::uint32_t root) {
    State& state = roots_[root];
    used_ += state.resident ? 0 : problem_.roots[root].bytes;
    state.resident = true;
    state.evicted = false;
    touch(root);
  }

  void make_room(std::size_t bytes) {
    while (used_ + bytes > bytes_) {
      const std::optional<std::uint32_t> victim = cheapest();
      if (!victim) {
        return;  // the plan will not fit
      }
      roots_[*victim].resident = false;
      roots_[*victim].evicted = true;
      used_ -= problem_.roots[*victim].bytes;
    }
  }

  bool may_go(std::uint32_t root) const {
    const Root& one = problem_.roots[root];
    const State& state = roots_[root];
    return one.may_drop && state.resident && state.pins == 0 && one.bytes > 0 &&
           last_use_[root] > given_ && until_[root] >= std::int64_t{last_use_[root]};
  }

  std::optional<std::uint32_t> cheapest() {
    std::optional<std::uint32_t> best;
    double least = std::numeric_limits<double>::infinity();
    for (std::uint32_t root = 0; root < roots_.size(); ++root) {
      if (!may_go(root)) {
        continue;
      }
      constexpr double just_now = 1e-9;  // seconds: tensors used in this step are evicted last
      const double stale = std::max(now_ - roots_[root].accessed, just_now);
      const double rank =
          seconds_around(root) / (static_cast<double>(problem_.roots[root].bytes) * stale);
      if (!best || rank < least) {
        best = root;
        least = rank;
      }
    }
    return best;
  }

  // Returns the seconds to compute the root and all evicted roots around it.
  double seconds_around(std::uint32_t root) {
    ++visit_;
    visited_.resize(roots_.size());
    visited_[root] = visit_;
    open_ = {root};
    double seconds = 0;
    while (!open_.empty()) {
      const std::uint32_t next = open_.back();
      open_.pop_back();
      seconds += dependencies_.seconds[next];
      const auto visit = [&](std::uint32_t other) {
        visited_[other] = visit_;
        open_.push_back(other);
      };
      for (const std::uint32_t source : dependencies_.sources[next]) {
        if (visited_[source] != visit_ && !roots_[source].resident && until_[source] >= 0) {
          visit(source);
        }
      }
      for (const std::uint32_t dependent : dependencies_.dependents[next]) {
        if (visited_[dependent] != visit_ && roots_[dependent].evicted) {
          visit(dependent);
        }
      }
    }
    return seconds;
  }

  // Frees roots without later uses.
  void release() {
    for (std::uint32_t root = 0; root < roots_.size(); ++root) {
      State& state = roots_[root];
      if (last_use_[root] > given_) {
        continue;
      }
      used_ -= state.resident ? problem_.roots[root].bytes : 0;
      state.resident = false;
      state.evicted = false;
    }
  }

  const PlanningProblem& problem_;
  std::size_t bytes_;
  Dependencies dependencies_;
  std::vector<std::uint32_t> last_use_;
  std::vector<std::int64_t> until_;
  std::vector<State> roots_;
  std::vector<Recompute> repeats_;
  std::uint32_t given_ = 0;
  std::size_t used_ = 0;
  double now_ = 0;
  // Scratch of seconds_around().
  std::vector<std::uint32_t> visited_, open_;
  std::uint32_t visit_ = 0;
};

}  // namespace

// The replay counts bytes and ignores gaps between tensors: it repeats with fewer bytes if its plan
// does not fit.
Plan dtr(const Request& request) {
  if (request.options.recompute == Recomputation::off || fits(request, request.schedule)) {
    return none(request);
  }
  constexpr std::size_t part = 64, most = 16;
  const Repeats repeats(request);
  const std::size_t device = request.budget.device;
  std::optional<Plan> first;
  for (std::size_t parts = 0; parts <= most; parts = parts == 0 ? 1 : 2 * parts) {
    const auto again = Rematerialization(repeats, device - device / part * parts).run();
    if (!again) {
      break;
    }
    const std::vector<Decision> decisions(again->begin(), again->end());
    Plan plan{.schedule = edit(request.schedule, decisions), .notes = {}};
    if (fits(request, plan.schedule)) {
      return plan;
    }
    if (!first) {
      first = std::move(plan);
    }
  }
  return first ? std::move(*first) : none(request);
}

}  // namespace cnn::lms
