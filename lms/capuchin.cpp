// X. Peng et al., "Capuchin: Tensor-based GPU Memory Management for Deep Learning", 2020. The times
// of a measured step determine how long each tensor is unused: its free time is that time minus a
// copy out and back, each in the first idle time of its direction of the link, which earlier
// choices share. Tensors with the most free time leave until the step fits, and return that long
// ahead. When free time runs out, the cheapest method per byte continues: copies with waits, or
// recomputation, whose cost depends on earlier drops. The paper's feedback from late copies into
// later steps has no place in a plan made once. Recomputation needs memory of its own: if the
// choice does not fit, it is made again as if each copy had the link to itself, so that more is
// copied.

#include <algorithm>
#include <limits>
#include <optional>
#include <utility>
#include <vector>

#include "lms/edit.h"
#include "lms/live_bytes.h"
#include "lms/policies.h"
#include "lms/repeats.h"
#include "lms/stash.h"
#include "runtime/memory_plan.h"
#include "runtime/timeline.h"

namespace cnn::lms {
namespace {

// One direction of the link, which carries one copy at a time: copies keep the time that they have
// reserved.
class CopyLane {
 public:
  // Returns the first start of an idle time that is long enough, not before `ready`.
  double earliest(double ready, double seconds) const {
    double start = ready;
    for (const Span& busy : busy_) {
      if (busy.start >= start + seconds) {
        break;
      }
      start = std::max(start, busy.end);
    }
    return start;
  }

  // Returns the last start of an idle time that is long enough, from which a copy ends by `due`.
  double latest(double due, double seconds) const {
    double end = due;
    for (std::size_t b = busy_.size(); b-- > 0;) {
      if (busy_[b].end <= end - seconds) {
        break;
      }
      end = std::min(end, busy_[b].start);
    }
    return end - seconds;
  }

  void reserve(double start, double seconds) {
    if (seconds > 0) {
      busy_.insert(std::ranges::upper_bound(busy_, start, {}, &Span::start),
                   {start, start + seconds});
    }
  }

 private:
  std::vector<Span> busy_;  // disjoint, ascending
};

class Chooser {
 public:
  // shares_link: copies wait for those chosen before; otherwise each has the link to itself.
  Chooser(const Request& request, bool shares_link)
      : request_(request),
        shares_link_(shares_link),
        tensors_(candidates(request)),
        live_(live_bytes(request)),
        repeats_(request),
        decisions_(repeats_.kept()),
        target_(request.budget.device) {
    double now = 0;
    for (const Step& step : request.schedule.steps) {
      const auto* compute = std::get_if<Compute>(&step.action);
      starts_.push_back(now);
      now += compute == nullptr ? 0 : request.costs.seconds[index_of(compute->node)];
      ends_.push_back(now);
    }
    chosen_.resize(tensors_.size());
    again_seconds_.resize(tensors_.size());
    as_of_.resize(tensors_.size());
  }

  // The bytes that placement adds are subtracted from the target of the next round.
  std::vector<Decision> decisions() {
    constexpr int rounds = 8;
    for (int round = 0; round < rounds; ++round) {
      choose();
      const std::size_t peak =
          plan_memory(request_.graph, schedule(), workspaces_of(request_)).device_bytes;
      if (peak <= request_.budget.device || exhausted_) {
        break;
      }
      target_ -= std::min(target_, peak - request_.budget.device);
    }
    return decided();
  }

 private:
  enum class Choice : std::uint8_t { none, swap, drop };

  double out_seconds(const Stashed& tensor) const {
    return copy_seconds(tensor, request_.costs.out_bytes_per_second);
  }
  double in_seconds(const Stashed& tensor) const {
    return copy_seconds(tensor, request_.costs.in_bytes_per_second);
  }
  static double copy_seconds(const Stashed& tensor, double rate) {
    return rate > 0 ? static_cast<double>(tensor.bytes) / rate : 0;
  }
  // Return the start of the tensor's copy out and back beside the copies chosen so far.
  double out_start(const Stashed& tensor) const {
    return out_.earliest(ends_[index_of(tensor.last_forward)], out_seconds(tensor));
  }
  double in_start(const Stashed& tensor) const {
    return in_.latest(starts_[index_of(tensor.first_backward)], in_seconds(tensor));
  }
  double free_time(const Stashed& tensor) const {
    return in_start(tensor) - out_start(tensor) - out_seconds(tensor);
  }

  // Returns the fullest step above the target.
  std::optional<StepId> fullest() const {
    const auto most = std::ranges::max_element(live_);
    return *most > target_ ? std::optional(StepId{static_cast<std::uint32_t>(most - live_.begin())})
                           : std::nullopt;
  }
  bool helps(std::size_t t, StepId step) const {
    return chosen_[t] == Choice::none && tensors_[t].last_forward < step &&
           step < tensors_[t].first_backward;
  }
  bool may_choose() const {
    const std::int64_t most = request_.options.n_tensors;
    return most < 0 ||
           std::cmp_less(std::ranges::count_if(chosen_, [](Choice c) { return c != Choice::none; }),
                         most);
  }

  void choose() {
    while (const std::optional<StepId> step = fullest()) {
      if (!may_choose() || !(choose_free(*step) || choose_cheapest(*step))) {
        exhausted_ = true;
        return;
      }
    }
  }

  bool choose_free(StepId step) {
    std::optional<std::size_t> best;
    double most = 0;
    for (std::size_t t = 0; t < tensors_.size(); ++t) {
      if (!helps(t, step)) {
        continue;
      }
      const double free = free_time(tensors_[t]);
      if (free >= 0 && (!best || free > most) && may_swap(t)) {
        best = t;
        most = free;
      }
    }
    if (best) {
      swap(*best);
    }
    return best.has_value();
  }

  // Computes the cost of dropping only for candidates chosen by their previous cost.
  bool choose_cheapest(StepId step) {
    while (const std::optional<std::pair<std::size_t, Choice>> best = cheapest(step)) {
      const std::size_t t = best->first;
      if (best->second == Choice::swap) {
        swap(t);
        return true;
      }
      if (as_of_[t] == changes_) {
        drop(t);
        return true;
      }
      again_seconds_[t] = seconds_again(t);
      as_of_[t] = changes_;
    }
    return false;
  }

  // Returns the candidate with the shortest wait, in seconds per byte.
  std::optional<std::pair<std::size_t, Choice>> cheapest(StepId step) const {
    double least = std::numeric_limits<double>::infinity();
    std::optional<std::pair<std::size_t, Choice>> best;
    for (std::size_t t = 0; t < tensors_.size(); ++t) {
      if (!helps(t, step)) {
        continue;
      }
      const auto bytes = static_cast<double>(tensors_[t].bytes);
      const double waits = std::max(0.0, -free_time(tensors_[t])) / bytes;
      if (waits < least && may_swap(t)) {
        least = waits;
        best = {t, Choice::swap};
      }
      if (again_seconds_[t] / bytes < least) {
        least = again_seconds_[t] / bytes;
        best = {t, Choice::drop};
      }
    }
    return best;
  }

  bool is_away(std::size_t root, StepId step) const {
    for (std::size_t t = 0; t < tensors_.size(); ++t) {
      if (chosen_[t] == Choice::swap && repeats_.root(tensors_[t].tensor) == root) {
        return tensors_[t].last_forward < step && step < tensors_[t].first_backward;
      }
    }
    return false;
  }

  // Returns whether no recomputation reads the tensor while it would be away.
  bool may_swap(std::size_t t) const {
    const auto root = static_cast<std::uint32_t>(repeats_.root(tensors_[t].tensor));
    return std::ranges::none_of(again_, [&](const Recompute& repeat) {
      const auto& reads = repeats_.problem().nodes[index_of(repeat.node)].reads;
      return repeat.before > tensors_[t].last_forward &&
             repeat.before < tensors_[t].first_backward &&
             std::ranges::find(reads, root) != reads.end();
    });
  }

  // Returns the added seconds of recomputation with this tensor dropped too; infinity if
  // impossible.
  double seconds_again(std::size_t t) {
    const Root& root = repeats_.problem().roots[repeats_.root(tensors_[t].tensor)];
    if (request_.options.recompute == Recomputation::off || !root.may_drop) {
      return std::numeric_limits<double>::infinity();
    }
    TensorDecisions decisions = decisions_;
    decisions[repeats_.root(tensors_[t].tensor)] = TensorDecision::drop;
    const auto found =
        repeats_.find(decisions, [&](std::size_t r, StepId step) { return is_away(r, step); });
    return found ? repeats_.seconds(*found) - repeats_.seconds(again_)
                 : std::numeric_limits<double>::infinity();
  }

  void drop(std::size_t t) {
    chosen_[t] = Choice::drop;
    decisions_[repeats_.root(tensors_[t].tensor)] = TensorDecision::drop;
    again_ = repeats_.find(decisions_).value();
    take_off(t, tensors_[t].first_backward);
  }

  void swap(std::size_t t) {
    chosen_[t] = Choice::swap;
    const StepId trigger = find_trigger(tensors_[t]);
    if (shares_link_) {
      out_.reserve(out_start(tensors_[t]), out_seconds(tensors_[t]));
      in_.reserve(in_start(tensors_[t]), in_seconds(tensors_[t]));
    }
    swaps_.push_back({.tensor = tensors_[t].tensor,
                      .out_behind = tensors_[t].last_forward,
                      .back_before = tensors_[t].first_backward,
                      .not_before = trigger});
    take_off(t, StepId{static_cast<std::uint32_t>(index_of(trigger) + 1)});
  }

  void take_off(std::size_t t, StepId back) {
    ++changes_;
    for (std::size_t s = index_of(tensors_[t].last_forward) + 1; s < index_of(back); ++s) {
      live_[s] -= std::min(live_[s], aligned(tensors_[t].bytes));
    }
  }

  // Returns the latest step that ends a copy's time ahead, but none before the last step above the
  // target.
  StepId find_trigger(const Stashed& tensor) const {
    const StepId back = tensor.first_backward;
    // A copy that is late anyway gets no lead for the copies before it.
    const double latest =
        free_time(tensor) >= 0 ? in_start(tensor) : starts_[index_of(back)] - in_seconds(tensor);
    StepId trigger = compute_before(request_.schedule, back);
    for (StepId step = trigger; step > tensor.last_forward && ends_[index_of(trigger)] > latest;) {
      step = compute_before(request_.schedule, step);
      if (step < tensor.last_forward || is_full_behind(step, trigger)) {
        break;
      }
      trigger = step;
    }
    return std::max(trigger, tensor.last_forward);
  }
  bool is_full_behind(StepId step, StepId last) const {
    for (std::size_t s = index_of(step) + 1; s <= index_of(last); ++s) {
      if (live_[s] > target_) {
        return true;
      }
    }
    return false;
  }

  std::vector<Decision> decided() const {
    std::vector<Decision> decisions(swaps_.begin(), swaps_.end());
    decisions.insert(decisions.end(), again_.begin(), again_.end());
    return decisions;
  }
  Schedule schedule() const { return edit(request_.schedule, decided()); }

  const Request& request_;
  bool shares_link_;
  std::vector<Stashed> tensors_;
  std::vector<std::size_t> live_;  // by StepId, without tensors chosen to leave
  Repeats repeats_;
  TensorDecisions decisions_;
  std::size_t target_;
  std::vector<double> starts_, ends_;  // by StepId: seconds, without copies
  CopyLane out_, in_;                  // with the copies of the swaps
  std::vector<Choice> chosen_;         // by tensor
  std::vector<Swap> swaps_;
  std::vector<Recompute> again_;
  std::vector<double> again_seconds_;  // by tensor: lower bound of the cost of dropping it
  std::vector<std::size_t> as_of_;     // by tensor: value of changes_ at that computation
  std::size_t changes_ = 1;            // choices, and the start
  bool exhausted_ = false;
};

}  // namespace

Plan capuchin(const Request& request) {
  const auto chosen = [&](bool shares_link) {
    return edit(request.schedule, Chooser(request, shares_link).decisions(),
                request.options.sync_mode);
  };
  Schedule shared = chosen(true);
  return {.schedule = fits(request, shared) ? std::move(shared) : chosen(false), .notes = {}};
}

}  // namespace cnn::lms
