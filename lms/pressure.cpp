#include "lms/pressure.h"

#include <algorithm>
#include <iterator>
#include <optional>

#include "lms/stash.h"
#include "runtime/access.h"
#include "runtime/memory_plan.h"

namespace cnn::lms {
namespace {

constexpr std::uint32_t nothing = ~std::uint32_t{0};

// The first and the last compute step that touch a root.
struct Span {
  std::uint32_t first = nothing, last = 0;
  bool elsewhere = false;  // another lane touches it too
};

class PressureBuilder {
 public:
  explicit PressureBuilder(const Request& request)
      : request_(request),
        graph_(request.graph),
        spans_(graph_.tensors().size()),
        movable_(graph_.tensors().size(), nothing),
        makers_(graph_.tensors().size()),
        parts_(graph_.tensors().size()) {}

  Pressure build() {
    add_steps();
    add_movables();
    std::erase_if(result_.movables, [](const Movable& one) { return one.uses.empty(); });
    number_movables();
    for (std::uint32_t s = 0; s < nodes_.size(); ++s) {
      result_.steps[s].live += static_cast<double>(aligned(workspace(s)));
      take_over(s);
    }
    add_live();
    add_costs();
    return std::move(result_);
  }

 private:
  const Node& node(std::uint32_t step) const { return graph_.nodes()[index_of(nodes_[step])]; }
  std::size_t root(TensorId tensor) const { return index_of(graph_.root_of(tensor)); }
  std::size_t workspace(std::uint32_t step) const {
    return request_.specs[index_of(nodes_[step])].workspace;
  }
  double bytes(std::size_t root) const {
    return static_cast<double>(aligned(graph_.tensors()[root].desc.bytes()));
  }

  void add_steps() {
    place_.assign(request_.schedule.steps.size(), nothing);
    for (std::size_t s = 0; s < request_.schedule.steps.size(); ++s) {
      const Step& step = request_.schedule.steps[s];
      const auto* compute = std::get_if<Compute>(&step.action);
      if (compute == nullptr) {
        continue;
      }
      const auto at = static_cast<std::uint32_t>(nodes_.size());
      for_each_access(graph_, step.action, [&](const Access& access) {
        Span& span = spans_[root(access.tensor)];
        span.elsewhere = span.elsewhere || step.lane != Lane::compute;
        span.first = std::min(span.first, at);
        span.last = std::max(span.last, at);
      });
      if (step.lane == Lane::compute) {
        place_[s] = at;
        nodes_.push_back(compute->node);
        const double seconds = request_.costs.seconds[index_of(compute->node)];
        result_.steps.push_back({.before = result_.seconds, .seconds = seconds, .away = {}});
        result_.seconds += seconds;
      }
    }
  }

  void add_movables() {
    for (const Stashed& one : candidates(request_)) {
      if (!spans_[index_of(one.tensor)].elsewhere) {
        Movable& added = add_movable(one.tensor);
        added.made = place_[index_of(one.made)];
        added.first_backward = place_[index_of(one.first_backward)];
        for (const StepId use : one.uses) {
          added.uses.push_back(place_[index_of(use)]);
        }
      }
    }
    request_.options.within_pass ? add_all_others() : add_other_outputs();
    for (const TensorId input : graph_.inputs()) {
      const Span& span = spans_[index_of(input)];
      if (!span.elsewhere && span.first < span.last) {
        Movable& added = add_movable(input);
        added.on_host = true;
        added.made = span.first;
        added.uses = {span.first, span.last};
        added.again = added.again_late = 0;
      }
    }
  }

  // Adds all other activations: those that the options let leave within a pass, and the others,
  // which a forward node may write anew when it runs again.
  void add_all_others() {
    const auto [makers, uses] = makers_and_uses();
    std::vector<bool> may_copy(spans_.size()), is_there(spans_.size());
    for (const TensorId tensor : movable_within_passes(request_)) {
      may_copy[index_of(tensor)] = true;
    }
    for (const Movable& one : result_.movables) {
      is_there[index_of(one.tensor)] = true;
    }
    const std::uint32_t backward = backward_place();
    for (std::uint32_t t = 0; t < spans_.size(); ++t) {
      if (is_there[t] || uses[t].empty() || makers[t].empty() || spans_[t].elsewhere ||
          graph_.tensors()[t].role != Role::activation) {
        continue;
      }
      Movable& added = add_movable(TensorId{t});
      added.may_copy = may_copy[t];
      const auto late = std::ranges::lower_bound(makers[t], backward);
      added.made = late == makers[t].begin() ? makers[t].back() : *std::prev(late);
      const auto first = std::ranges::lower_bound(uses[t], backward);
      added.first_backward = first == uses[t].end() ? nothing : *first;
      added.uses = uses[t];
    }
  }

  // Adds activations from the forward to the backward pass that are not candidates but are
  // rewritten when a candidate is recomputed.
  void add_other_outputs() {
    const std::uint32_t backward = backward_place();
    auto [makers, uses] = makers_and_uses();
    for (const std::uint32_t t : made_with_candidates(makers, backward)) {
      if (!uses[t].empty() && uses[t].back() >= backward &&
          graph_.tensors()[t].role == Role::activation && !spans_[t].elsewhere) {
        Movable& added = add_movable(TensorId{t});
        added.may_copy = false;
        added.made = *std::prev(std::ranges::lower_bound(makers[t], backward));
        added.first_backward = *std::ranges::lower_bound(uses[t], backward);
        added.uses = std::move(uses[t]);
      }
    }
  }

  // The steps that write each root, and those that read it.
  struct MakersAndUses {
    std::vector<std::vector<std::uint32_t>> makers, uses;
  };
  MakersAndUses makers_and_uses() const {
    using Steps = std::vector<std::vector<std::uint32_t>>;
    MakersAndUses uses{.makers = Steps(spans_.size()), .uses = Steps(spans_.size())};
    for (std::uint32_t s = 0; s < nodes_.size(); ++s) {
      for_each_access(graph_, Compute{nodes_[s]}, [&](const Access& access) {
        const bool defines = access.kind == Access::Kind::define;
        std::vector<std::uint32_t>& steps =
            (defines ? uses.makers : uses.uses)[root(access.tensor)];
        if (steps.empty() || steps.back() != s) {
          steps.push_back(s);
        }
      });
    }
    return uses;
  }

  // Returns roots besides the candidates that are written by forward steps which may run again for
  // a candidate, or for the inputs of those steps. makers: by root.
  std::vector<std::uint32_t> made_with_candidates(
      const std::vector<std::vector<std::uint32_t>>& makers, std::uint32_t backward) const {
    std::vector<bool> is_found(spans_.size()), may_run(nodes_.size());
    std::vector<std::uint32_t> found, open;
    for (const Movable& one : result_.movables) {
      is_found[index_of(one.tensor)] = true;
      open.push_back(static_cast<std::uint32_t>(index_of(one.tensor)));
    }
    while (!open.empty()) {
      const std::uint32_t made = open.back();
      open.pop_back();
      for (const std::uint32_t step : makers[made]) {
        if (step >= backward || may_run[step]) {
          continue;
        }
        may_run[step] = true;
        for_each_access(graph_, Compute{nodes_[step]}, [&](const Access& access) {
          const auto r = static_cast<std::uint32_t>(root(access.tensor));
          if (!is_found[r]) {
            is_found[r] = true;
            found.push_back(r);
            open.push_back(r);
          }
        });
      }
    }
    std::erase_if(found, [&](std::uint32_t r) {
      return std::ranges::none_of(makers[r], [&](std::uint32_t s) { return may_run[s]; });
    });
    std::ranges::sort(found);
    return found;
  }

  // Returns the first compute step of the backward pass.
  std::uint32_t backward_place() const {
    for (std::size_t s = index_of(request_.backward); s < place_.size(); ++s) {
      if (place_[s] != nothing) {
        return place_[s];
      }
    }
    return nothing;
  }

  Movable& add_movable(TensorId tensor) {
    const double all = bytes(index_of(tensor));
    const auto moved = static_cast<double>(graph_.info(tensor).desc.bytes());
    return result_.movables.emplace_back(
        Movable{.tensor = tensor, .bytes = all, .padding = all - moved, .uses = {}});
  }

  void number_movables() {
    for (std::uint32_t m = 0; m < result_.movables.size(); ++m) {
      movable_[index_of(result_.movables[m].tensor)] = m;
    }
    held_by_.assign(result_.movables.size(), nothing);
  }

  // Finds operands that end here, or may leave here, and whose bytes an output may take over.
  void take_over(std::uint32_t step) {
    const Node& one = node(step);
    std::vector<TensorId> given;
    for (std::size_t o = 0; o < one.outputs.size(); ++o) {
      bool ends = false;
      for (std::size_t i = 0; i < one.inputs.size(); ++i) {
        const TensorId from = one.inputs[i];
        if (!is_persistent(graph_.info(from).role) && may_reuse_in_place(graph_, one, i, o)) {
          ends = ends || spans_[index_of(from)].last == step;
          given.push_back(from);
        }
      }
      const Span& to = spans_[root(one.outputs[o])];
      result_.steps[step].live -= ends && !to.elsewhere ? bytes(root(one.outputs[o])) : 0;
    }
    find_away(step, given);
  }

  // Finds the tensors that a step does not touch, or whose bytes an output may take over.
  void find_away(std::uint32_t step, std::span<const TensorId> given) {
    for_each_access(graph_, Compute{nodes_[step]}, [&](const Access& access) {
      const std::uint32_t m = movable_[root(access.tensor)];
      if (m != nothing && std::ranges::find(given, access.tensor) == given.end()) {
        held_by_[m] = step;
      }
    });
    for (std::uint32_t m = 0; m < result_.movables.size(); ++m) {
      const Movable& one = result_.movables[m];
      if (one.made < step && step < one.last() && held_by_[m] != step) {
        result_.steps[step].away.push_back(m);
      }
    }
  }

  // Computes first differences, then their prefix sum.
  void add_live() {
    std::vector<double> change(result_.steps.size() + 1);
    for (std::size_t t = 0; t < spans_.size(); ++t) {
      const Span& span = spans_[t];
      if (span.first != nothing && !span.elsewhere && !is_persistent(graph_.tensors()[t].role)) {
        change[span.first] += bytes(t);
        change[span.last + 1] -= bytes(t);
      }
    }
    double live = 0;
    for (std::size_t s = 0; s < result_.steps.size(); ++s) {
      live += change[s];
      result_.steps[s].live += live;
    }
  }

  void add_costs() {
    for (std::uint32_t s = 0; s < nodes_.size(); ++s) {
      for (const TensorId output : node(s).outputs) {
        makers_[index_of(output)].push_back(s);
      }
    }
    for (std::uint32_t t = 0; t < parts_.size(); ++t) {
      parts_[root(TensorId{t})].push_back(TensorId{t});
    }
    for (Movable& one : result_.movables) {
      if (one.on_host) {
        continue;
      }
      const std::uint32_t last[] = {one.last()};
      const auto late = std::ranges::lower_bound(one.uses, one.first_backward);
      one.again_late = seconds_again(one.tensor, last);
      one.again = late == one.uses.end()
                      ? one.again_late
                      : seconds_again(one.tensor, std::span(late, one.uses.end()));
      one.in_parts = in_parts_;
      if (one.made >= backward_place()) {
        one.again = one.again_late = Movable::never;  // only forward nodes run again
      }
    }
  }

  // Returns the seconds of the nodes that write what these steps read of a root.
  double seconds_again(TensorId movable, std::span<const std::uint32_t> uses) {
    std::vector<std::uint32_t> makers;
    const auto add = [&](TensorId tensor) {
      for (const std::uint32_t maker : makers_[index_of(tensor)]) {
        if (std::ranges::find(makers, maker) == makers.end()) {
          makers.push_back(maker);
        }
      }
    };
    in_parts_ = false;
    for (const TensorId part : parts_[index_of(movable)]) {
      const bool has_makers = !makers_[index_of(part)].empty();
      in_parts_ = in_parts_ || (part != movable && has_makers);
      if (std::ranges::any_of(uses, [&](std::uint32_t use) { return reads(use, part, movable); })) {
        add(has_makers ? part : movable);
      }
    }
    double seconds = 0;
    for (const std::uint32_t maker : makers) {
      seconds += share(maker, movable);
    }
    return seconds;
  }

  // Returns whether a step reads the part; reading the whole includes each part.
  bool reads(std::uint32_t step, TensorId part, TensorId whole) const {
    const std::vector<TensorId>& inputs = node(step).inputs;
    return std::ranges::find(inputs, part) != inputs.end() ||
           std::ranges::find(inputs, whole) != inputs.end();
  }

  // Returns the share of a node's time in proportion to the bytes that it writes to movables.
  double share(std::uint32_t step, TensorId movable) const {
    const Node& one = node(step);
    for (std::size_t i = 0; i < one.inputs.size(); ++i) {
      if (one.op->mutates(i)) {
        return Movable::never;
      }
    }
    double all = 0, own = 0;
    for (const TensorId output : one.outputs) {
      if (movable_[root(output)] != nothing) {
        const auto bytes = static_cast<double>(graph_.info(output).desc.bytes());
        all += bytes;
        own += graph_.root_of(output) == movable ? bytes : 0;
      }
    }
    return all > 0 ? result_.steps[step].seconds * own / all : 0;
  }

  const Request& request_;
  const Graph& graph_;
  std::vector<std::uint32_t> place_;                // by StepId: of compute steps
  std::vector<NodeId> nodes_;                       // by step
  std::vector<Span> spans_;                         // by TensorId of roots
  std::vector<std::uint32_t> movable_;              // by TensorId of roots
  std::vector<std::vector<std::uint32_t>> makers_;  // by TensorId: steps
  std::vector<std::vector<TensorId>> parts_;  // by TensorId of roots: itself and tensors inside it
  std::vector<std::uint32_t> held_by_;        // by movable: latest step that needs it
  bool in_parts_ = false;
  Pressure result_;
};

}  // namespace

Pressure pressure(const Request& request) { return PressureBuilder(request).build(); }

}  // namespace cnn::lms
