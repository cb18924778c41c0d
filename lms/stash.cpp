#include "lms/stash.h"

#include <algorithm>
#include <optional>
#include <regex>

#include "runtime/access.h"
#include "runtime/error.h"

namespace cnn::lms {
namespace {

class Finder {
 public:
  Finder(const Graph& graph, const Schedule& schedule, StepId backward)
      : graph_(graph), backward_(backward), found_(graph.tensors().size()) {
    for (std::size_t s = 0; s < schedule.steps.size(); ++s) {
      if (std::holds_alternative<Compute>(schedule.steps[s].action)) {
        compute(StepId{static_cast<std::uint32_t>(s)}, schedule.steps[s].action);
      }
    }
    for (const Output& output : graph.outputs()) {
      found_[index_of(graph.root_of(output.tensor))].reset();
    }
  }

  std::vector<Stashed> in_order() const {
    std::vector<Stashed> result;
    for (const std::optional<Stashed>& one : found_) {
      if (one && one->made < backward_ && !one->uses.empty() && one->uses.back() >= backward_) {
        result.push_back(*one);
        complete(result.back());
      }
    }
    std::ranges::stable_sort(result, {}, &Stashed::made);
    return result;
  }

 private:
  void compute(StepId step, const Action& action) {
    for_each_access(graph_, action, [&](const Access& access) {
      const TensorId root = graph_.root_of(access.tensor);
      if (graph_.info(root).role != Role::activation) {
        return;
      }
      std::optional<Stashed>& one = found_[index_of(root)];
      if (access.kind == Access::Kind::define && (!one || step < backward_)) {
        one = one.value_or(Stashed{.tensor = root, .bytes = graph_.info(root).desc.bytes()});
        one->made = step;
      } else if (one && access.kind == Access::Kind::mutate) {
        one.reset();
      } else if (one && (one->uses.empty() || one->uses.back() != step)) {
        one->uses.push_back(step);
      }
    });
  }

  void complete(Stashed& one) const {
    const auto first = std::ranges::lower_bound(one.uses, backward_);
    one.first_backward = *first;
    one.last_forward = first == one.uses.begin() ? one.made : std::max(one.made, *std::prev(first));
    one.last = one.uses.back();
  }

  const Graph& graph_;
  StepId backward_;
  std::vector<std::optional<Stashed>> found_;  // by TensorId of roots
};

class Filter {
 public:
  explicit Filter(const std::vector<std::string>& expressions) {
    for (const std::string& expression : expressions) {
      try {
        expressions_.emplace_back(expression);
      } catch (const std::regex_error&) {
        throw Error("'" + expression +
                    "' is not a regular expression of ops to include or exclude");
      }
    }
  }
  bool is_empty() const { return expressions_.empty(); }
  bool matches(std::string_view name) const {
    return std::ranges::any_of(expressions_, [&](const std::regex& expression) {
      return std::regex_search(name.begin(), name.end(), expression);
    });
  }

 private:
  std::vector<std::regex> expressions_;
};

}  // namespace

std::vector<Stashed> stashed(const Graph& graph, const Schedule& schedule, StepId backward) {
  return Finder(graph, schedule, backward).in_order();
}

std::vector<Stashed> candidates(const Request& request) {
  const Options& options = request.options;
  const Graph& graph = request.graph;
  const Filter no_name(options.excluded_ops), name(options.included_ops);
  const Filter no_type(options.excluded_types), type(options.included_types);
  std::vector<Stashed> all = stashed(graph, request.schedule, request.backward);
  std::erase_if(all, [&](const Stashed& one) {
    const std::string& tensor = graph.info(one.tensor).name;
    const NodeId maker = std::get<Compute>(request.schedule.steps[index_of(one.made)].action).node;
    const std::string_view op = graph.nodes()[index_of(maker)].op->name();
    return one.bytes < std::max<std::size_t>(options.size_threshold, 1) ||
           no_name.matches(tensor) || no_type.matches(op) ||
           (!name.is_empty() && !name.matches(tensor)) || (!type.is_empty() && !type.matches(op));
  });
  return all;
}

}  // namespace cnn::lms
