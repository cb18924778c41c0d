#include "lms/planning_problem.h"

#include <algorithm>
#include <functional>

#include "lms/policy.h"
#include "lms/stash.h"
#include "runtime/access.h"
#include "runtime/memory_plan.h"

namespace cnn::lms {
namespace {

constexpr std::uint32_t no_root = ~std::uint32_t{0};

class ProblemBuilder {
 public:
  explicit ProblemBuilder(const Request& request)
      : request_(request),
        graph_(request.graph),
        root_of_(request.graph.tensors().size(), no_root) {}

  PlanningProblem build() {
    add_roots();
    for (std::size_t n = 0; n < graph_.nodes().size(); ++n) {
      add_node(n);
    }
    for (const Step& step : request_.schedule.steps) {
      add_step(step);
    }
    result_.backward = index_of(request_.backward);
    result_.out_bytes_per_second = request_.costs.out_bytes_per_second;
    result_.in_bytes_per_second = request_.costs.in_bytes_per_second;
    result_.copy_latency = request_.costs.copy_latency;
    result_.host_bytes = request_.budget.host;
    result_.disk_bytes = request_.budget.disk;
    result_.store_bytes_per_second = request_.costs.store_bytes_per_second;
    result_.load_bytes_per_second = request_.costs.load_bytes_per_second;
    mark_forward();
    find_last_repeats();
    mark_candidates();
    if (request_.options.within_pass) {
      mark_leaving_often();
    }
    mark_early();
    return std::move(result_);
  }

 private:
  void add_roots() {
    for (std::size_t t = 0; t < graph_.tensors().size(); ++t) {
      const TensorId id{static_cast<std::uint32_t>(t)};
      const TensorInfo& info = graph_.info(id);
      if (graph_.root_of(id) != id || is_persistent(info.role)) {
        continue;
      }
      root_of_[t] = static_cast<std::uint32_t>(result_.roots.size());
      result_.roots.push_back({.tensor = id,
                               .bytes = aligned(info.desc.bytes()),
                               .makers = {},
                               .is_input = info.role == Role::input});
    }
  }

  std::uint32_t root(TensorId tensor) const { return root_of_[index_of(graph_.root_of(tensor))]; }

  static void add(std::vector<std::uint32_t>& to, std::uint32_t root) {
    if (std::ranges::find(to, root) == to.end()) {
      to.push_back(root);
    }
  }

  void add_node(std::size_t n) {
    const Node& node = graph_.nodes()[n];
    ProblemNode& made = result_.nodes.emplace_back();
    made.workspace = aligned(request_.specs[n].workspace);
    made.seconds = request_.costs.seconds[n];
    bool mutates = false;
    for_each_access(graph_, Compute{NodeId{static_cast<std::uint32_t>(n)}}, [&](const Access& a) {
      mutates = mutates || a.kind == Access::Kind::mutate;
      const std::uint32_t r = root(a.tensor);
      if (r == no_root) {
        return;
      }
      if (a.kind == Access::Kind::define) {
        add(made.writes, r);
        add(result_.roots[r].makers, static_cast<std::uint32_t>(n));
      } else {
        add(made.reads, r);
      }
    });
    made.may_repeat = !mutates;
    for (std::size_t o = 0; o < node.outputs.size(); ++o) {
      for (std::size_t i = 0; i < node.inputs.size(); ++i) {
        if (root(node.inputs[i]) != no_root && may_reuse_in_place(graph_, node, i, o)) {
          made.may_reuse.push_back({root(node.inputs[i]), root(node.outputs[o])});
        }
      }
    }
  }

  void add_step(const Step& step) {
    if (const auto* compute = std::get_if<Compute>(&step.action)) {
      result_.steps.push_back({StepKind::compute, static_cast<std::uint32_t>(compute->node)});
    } else if (const auto* fetch = std::get_if<Fetch>(&step.action)) {
      result_.steps.push_back({StepKind::fetch, root(fetch->tensor)});
    } else if (const auto* offload = std::get_if<Offload>(&step.action)) {
      result_.steps.push_back({StepKind::offload, root(offload->tensor)});
    }
  }

  // Lists the steps that read and write each root.
  void list_uses() {
    for (std::uint32_t s = 0; s < result_.steps.size(); ++s) {
      const ProblemStep& step = result_.steps[s];
      if (step.kind != StepKind::compute) {
        continue;
      }
      for (const std::uint32_t root : result_.nodes[step.id].reads) {
        result_.roots[root].uses.push_back(s);
      }
      for (const std::uint32_t root : result_.nodes[step.id].writes) {
        result_.roots[root].written = s;
      }
    }
  }

  // Only forward nodes may run again: then all their inputs can be recomputed.
  void mark_forward() {
    std::vector<bool> forward(result_.nodes.size());
    for (std::size_t s = 0; s < result_.steps.size() && s < result_.backward; ++s) {
      if (result_.steps[s].kind == StepKind::compute) {
        forward[result_.steps[s].id] = true;
      }
    }
    for (std::size_t s = result_.backward; s < result_.steps.size(); ++s) {
      const ProblemStep& step = result_.steps[s];
      if (step.kind != StepKind::compute) {
        result_.roots[step.id].needed_backward = true;
        continue;
      }
      for (const std::uint32_t root : result_.nodes[step.id].reads) {
        result_.roots[root].needed_backward = true;
        result_.roots[root].backward_uses.push_back(static_cast<std::uint32_t>(s));
      }
    }
    mark_used_apart();
    for (std::size_t n = 0; n < forward.size(); ++n) {
      result_.nodes[n].may_repeat = result_.nodes[n].may_repeat && forward[n];
    }
  }

  // Finds for each root the last step before which its makers can run again: the first one that
  // updates a variable that they or makers of their operands read. Converted weights are such a
  // root, which the gradient of the data may read after the update of the weights themselves.
  void find_last_repeats() {
    const auto never = static_cast<std::uint32_t>(result_.steps.size());
    std::vector<std::uint32_t> updated(graph_.tensors().size(), never);
    for (std::uint32_t s = never; s-- > 0;) {
      for_each_access(graph_, request_.schedule.steps[s].action, [&](const Access& access) {
        if (access.kind == Access::Kind::mutate) {
          updated[index_of(graph_.root_of(access.tensor))] = s;
        }
      });
    }
    last_repeat_.assign(result_.roots.size(), never);
    for (std::size_t s = 0; s < result_.backward && s < result_.steps.size(); ++s) {
      if (result_.steps[s].kind != StepKind::compute) {
        continue;
      }
      const std::uint32_t n = result_.steps[s].id;
      std::uint32_t last = never;
      for (const TensorId input : graph_.nodes()[n].inputs) {
        last = std::min(last, updated[index_of(graph_.root_of(input))]);
      }
      for (const std::uint32_t root : result_.nodes[n].reads) {
        last = std::min(last, last_repeat_[root]);
      }
      for (const std::uint32_t root : result_.nodes[n].writes) {
        last_repeat_[root] = std::min(last_repeat_[root], last);
      }
    }
  }

  void mark_used_apart() {
    std::vector<std::uint32_t> before(result_.steps.size());  // by step: number of compute steps
    for (std::size_t s = 1; s < result_.steps.size(); ++s) {
      before[s] = before[s - 1] + (result_.steps[s - 1].kind == StepKind::compute ? 1 : 0);
    }
    for (Root& root : result_.roots) {
      root.used_apart = std::ranges::adjacent_find(root.backward_uses, [&](auto a, auto b) {
                          return before[b] > before[a] + 1;
                        }) != root.backward_uses.end();
    }
  }

  // If the number of moves is limited, takes the largest.
  void mark_candidates() {
    std::vector<Stashed> all = candidates(request_);
    const std::int64_t most = request_.options.n_tensors;
    if (most >= 0 && static_cast<std::size_t>(most) < all.size()) {
      std::ranges::stable_sort(all, std::greater<>(), &Stashed::bytes);
      all.resize(static_cast<std::size_t>(most));
    }
    for (const Stashed& one : all) {
      Root& root = result_.roots[root_of_[index_of(one.tensor)]];
      root.may_leave = true;
      root.may_drop = may_drop(one.tensor);
      root.may_swap = may_swap(root);
    }
  }

  bool may_swap(const Root& root) const {
    return root.is_input || root.bytes <= request_.budget.host;
  }

  bool may_drop(TensorId tensor) const {
    const std::uint32_t r = root_of_[index_of(tensor)];
    const Root& root = result_.roots[r];
    const bool is_in_time =
        root.backward_uses.empty() || root.backward_uses.back() <= last_repeat_[r];
    return is_in_time && std::ranges::all_of(root.makers, [&](std::uint32_t maker) {
             return result_.nodes[maker].may_repeat && is_allowed(maker);
           });
  }

  // A limited number of moves counts tensors that leave once.
  void mark_leaving_often() {
    list_uses();
    if (request_.options.n_tensors >= 0) {
      return;
    }
    for (const TensorId tensor : movable_within_passes(request_)) {
      Root& root = result_.roots[root_of_[index_of(tensor)]];
      root.may_leave_often = true;
      root.may_drop = may_drop(tensor);
      root.may_swap = may_swap(root);
    }
  }

  void mark_early() {
    std::vector<std::uint32_t> written(result_.roots.size());  // by root: the last step so far
    std::vector<bool> is_read(result_.roots.size());           // in the backward pass
    for (std::uint32_t s = 0; s < result_.steps.size(); ++s) {
      if (result_.steps[s].kind != StepKind::compute) {
        continue;
      }
      const ProblemNode& node = result_.nodes[result_.steps[s].id];
      for (const std::uint32_t r : node.reads) {
        Root& root = result_.roots[r];
        if (s < result_.backward || is_read[r] || !root.may_drop || !root.may_leave) {
          continue;
        }
        is_read[r] = true;
        std::size_t largest = 0;
        for (const std::uint32_t other : node.reads) {
          const std::size_t bytes = result_.roots[other].bytes;
          if (other != r && written[other] > result_.backward && bytes > largest) {
            largest = bytes;
            root.early = written[other];
          }
        }
      }
      for (const std::uint32_t r : node.writes) {
        written[r] = s;
      }
    }
  }

  // A node is cheap if it takes no longer than moving its operands.
  bool is_allowed(std::uint32_t node) const {
    const KernelSpec& spec = request_.specs[node];
    return request_.options.recompute != Recomputation::cheap ||
           graph_.nodes()[node].op->flops(spec.in) == 0;
  }

  const Request& request_;
  const Graph& graph_;
  std::vector<std::uint32_t> root_of_;      // by TensorId of roots
  std::vector<std::uint32_t> last_repeat_;  // by root: no maker may run again behind this step
  PlanningProblem result_;
};

}  // namespace

PlanningProblem planning_problem(const Request& request) { return ProblemBuilder(request).build(); }

}  // namespace cnn::lms
