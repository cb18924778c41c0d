#include "lms/stash.h"

#include <algorithm>
#include <optional>

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

// Decides which tensors the options let leave: by size, by name, by name of the op that makes them.
class Choice {
 public:
  explicit Choice(const Request& request)
      : graph_(request.graph),
        min_bytes_(std::max<std::size_t>(request.options.size_threshold, 1)),
        no_name_(request.options.excluded_ops),
        name_(request.options.included_ops),
        no_type_(request.options.excluded_types),
        type_(request.options.included_types) {}

  bool operator()(TensorId tensor, const Action& maker) const {
    const TensorInfo& info = graph_.info(tensor);
    const auto* compute = std::get_if<Compute>(&maker);
    if (compute == nullptr || info.desc.bytes() < min_bytes_) {
      return false;
    }
    const std::string_view op = graph_.nodes()[index_of(compute->node)].op->name();
    return !no_name_.matches(info.name) && !no_type_.matches(op) &&
           (name_.is_empty() || name_.matches(info.name)) &&
           (type_.is_empty() || type_.matches(op));
  }

 private:
  const Graph& graph_;
  std::size_t min_bytes_;
  NameFilter no_name_, name_, no_type_, type_;
};

}  // namespace

NameFilter::NameFilter(const std::vector<std::string>& expressions) {
  for (const std::string& expression : expressions) {
    try {
      expressions_.emplace_back(expression);
    } catch (const std::regex_error&) {
      throw Error("'" + expression + "' is not a regular expression of ops to include or exclude");
    }
  }
}

bool NameFilter::matches(std::string_view name) const {
  return std::ranges::any_of(expressions_, [&](const std::regex& expression) {
    return std::regex_search(name.begin(), name.end(), expression);
  });
}

std::vector<Stashed> stashed(const Graph& graph, const Schedule& schedule, StepId backward) {
  return Finder(graph, schedule, backward).in_order();
}

std::vector<TensorId> movable_within_passes(const Request& request) {
  const Graph& graph = request.graph;
  std::vector<bool> moves(graph.tensors().size());
  const Choice is_chosen(request);
  for (std::uint32_t t = 0; t < moves.size(); ++t) {
    moves[t] = graph.root_of(TensorId{t}) == TensorId{t} &&
               graph.info(TensorId{t}).role == Role::activation;
  }
  for (const Output& output : graph.outputs()) {
    moves[index_of(graph.root_of(output.tensor))] = false;
  }
  std::vector<TensorId> in_order;
  for (const Step& step : request.schedule.steps) {
    for_each_access(graph, step.action, [&](const Access& access) {
      const TensorId root = graph.root_of(access.tensor);
      if (step.lane != Lane::compute || access.kind == Access::Kind::mutate) {
        moves[index_of(root)] = false;
      } else if (access.kind == Access::Kind::define && is_chosen(root, step.action)) {
        in_order.push_back(root);
      }
    });
  }
  std::vector<bool> is_listed(moves.size());
  std::erase_if(in_order, [&](TensorId root) {
    const bool first = !is_listed[index_of(root)];
    is_listed[index_of(root)] = true;
    return !first || !moves[index_of(root)];
  });
  return in_order;
}

std::vector<Stashed> candidates(const Request& request) {
  std::vector<Stashed> all = stashed(request.graph, request.schedule, request.backward);
  const Choice is_chosen(request);
  std::erase_if(all, [&](const Stashed& one) {
    return !is_chosen(one.tensor, request.schedule.steps[index_of(one.made)].action);
  });
  return all;
}

}  // namespace cnn::lms
