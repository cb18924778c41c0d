#include "lms/evaluate.h"

#include <algorithm>
#include <numeric>

namespace cnn::lms {

Evaluator::Evaluator(const PlanningProblem& problem, std::size_t device_bytes, SyncMode sync)
    : device_bytes_(device_bytes), sync_(sync), disk_(problem) {
  const auto seconds_of = [&](std::size_t bytes, double rate) {
    return problem.copy_latency + (rate > 0 ? static_cast<double>(bytes) / rate : 0);
  };
  for (const Root& root : problem.roots) {
    root_bytes_.push_back(root.bytes);
    swap_out_seconds_.push_back(seconds_of(root.bytes, problem.out_bytes_per_second));
    swap_in_seconds_.push_back(seconds_of(root.bytes, problem.in_bytes_per_second));
  }
  for (const ProblemNode& node : problem.nodes) {
    workspace_.push_back(node.workspace);
    node_seconds_.push_back(node.seconds);
  }
}

const Evaluation& Evaluator::evaluate(const ExpandedSchedule& expanded) {
  weigh(expanded);
  run(expanded);
  return result_;
}

const Evaluation& Evaluator::estimate(const ExpandedSchedule& expanded, double seconds) {
  weigh(expanded);
  if (result_.fits && result_.seconds <= seconds) {
    run(expanded);
  }
  return result_;
}

void Evaluator::weigh(const ExpandedSchedule& expanded) {
  result_ = {.seconds = expanded.seconds};
  add_intervals(expanded);
  measure();
}

void Evaluator::run(const ExpandedSchedule& expanded) {
  find_copies(expanded);
  if (swap_outs_.empty()) {
    return;
  }
  if (!waits_for_in(sync_)) {
    merge_returns(expanded);
    bring_forward(expanded);
    measure();
  }
  run_lanes(expanded);
}

// Computes first differences, which wrap around, then their prefix sum.
void Evaluator::add_intervals(const ExpandedSchedule& expanded) {
  bytes_.assign(expanded.steps.size() + 1, 0);
  for (const LiveInterval& interval : expanded.intervals) {
    const std::size_t bytes = bytes_of(interval);
    bytes_[interval.first] += bytes;
    bytes_[interval.last + 1] -= bytes;
  }
  std::partial_sum(bytes_.begin(), bytes_.end(), bytes_.begin());
  for (const InPlaceReuse& taken : expanded.reused_in_place) {
    bytes_[taken.step] -= taken.bytes;
  }
  for (std::size_t s = 0; s < expanded.steps.size(); ++s) {
    if (expanded.steps[s].kind == StepKind::compute) {
      bytes_[s] += workspace_[expanded.steps[s].id];
    }
  }
}

void Evaluator::find_copies(const ExpandedSchedule& expanded) {
  swap_outs_.clear();
  swap_ins_.clear();
  for (std::uint32_t s = 0; s < expanded.intervals.size(); ++s) {
    if (expanded.intervals[s].leaves) {
      swap_outs_.push_back({.interval = s});
    }
    if (expanded.intervals[s].returns) {
      swap_ins_.push_back({.interval = s, .position = expanded.intervals[s].first});
    }
  }
  std::ranges::stable_sort(
      swap_outs_, {}, [&](const PlacedSwapOut& d) { return expanded.intervals[d.interval].last; });
  swap_out_of_.assign(root_bytes_.size(), -1);
  for (std::size_t d = 0; d < swap_outs_.size(); ++d) {
    swap_out_of_[expanded.intervals[swap_outs_[d].interval].root] = static_cast<std::int32_t>(d);
  }
}

// Omits the copies of tensors that returned before, where memory permits that they stay between
// both uses: their bytes are still the same.
void Evaluator::merge_returns(const ExpandedSchedule& expanded) {
  std::erase_if(swap_ins_, [&](const PlacedSwapIn& one) {
    const LiveInterval& interval = expanded.intervals[one.interval];
    const std::int32_t left = swap_out_of_[interval.root];
    const std::uint32_t use = interval.earliest - 1;  // the previous one
    if (left < 0 ||
        expanded.intervals[swap_outs_[static_cast<std::size_t>(left)].interval].last == use) {
      return false;  // its first return: the host alone has it
    }
    const bool is_taken =
        std::ranges::any_of(expanded.reused_in_place, [&](const InPlaceReuse& taken) {
          return taken.step == use && taken.from == interval.root;
        });
    const auto from = bytes_.begin() + (is_taken ? use : use + 1);
    const auto to = bytes_.begin() + interval.first;
    const std::size_t bytes = bytes_of(interval);
    const bool fits =
        std::all_of(from, to, [&](std::size_t live) { return live + bytes <= device_bytes_; });
    if (fits) {
      std::for_each(from, to, [&](std::size_t& live) { live += bytes; });
    }
    return fits;
  });
}

// Moves each swap-in as far towards the start of its pass as memory up to its use permits, and
// never before the previous swap-in. Nor before the fetch of an input, which is in the same lane:
// it would wait until all of the swap-in is there.
void Evaluator::bring_forward(const ExpandedSchedule& expanded) {
  std::uint32_t least = 0, step = 0;
  for (PlacedSwapIn& one : swap_ins_) {
    const LiveInterval& interval = expanded.intervals[one.interval];
    const std::size_t bytes = bytes_of(interval);
    for (; step < interval.first; ++step) {
      least = expanded.steps[step].kind == StepKind::fetch ? std::max(least, step + 1) : least;
    }
    if (interval.first >= expanded.backward) {
      least = std::max(least, static_cast<std::uint32_t>(expanded.backward));
    }
    const std::uint32_t earliest = std::max(least, interval.earliest);
    while (one.position > earliest && bytes_[one.position - 1] + bytes <= limit(one.position - 1)) {
      --one.position;
      bytes_[one.position] += bytes;
    }
    least = std::max(least, one.position);
  }
}

void Evaluator::measure() {
  for (std::size_t s = 0; s + 1 < bytes_.size(); ++s) {
    result_.peak = std::max(result_.peak, bytes_[s]);
  }
  result_.fits = result_.peak <= device_bytes_;
  result_.excess = 0;
  for (std::size_t s = 0; !result_.fits && s + 1 < bytes_.size(); ++s) {
    if (bytes_[s] > device_bytes_) {
      result_.excess += static_cast<double>(bytes_[s] - device_bytes_);
    }
  }
}

// Frees the oldest swap-outs first, until enough room is left beside the running ones.
void Evaluator::free_for(std::uint32_t step, std::size_t room,
                         std::optional<std::uint32_t> for_swap_in) {
  waits_until_ = 0;
  while (pending_ > room && freed_ < started_) {
    PlacedSwapOut& swap_out = swap_outs_[freed_];
    if (for_swap_in) {
      swap_out.freed_for_swap_in = for_swap_in;
    } else {
      swap_out.freed_for_step = step;
    }
    waits_until_ = departed_[freed_];
    free_next();
  }
}

// Frees the oldest swap-out that is not free yet.
void Evaluator::free_next() {
  pending_ -= pending_bytes_[freed_];
  promised_ += pending_bytes_[freed_];
  ++freed_;
}

// Returns the time from which on a step has its bytes, `now` or later. A swap-in takes over bytes
// of the swap-outs that it waits for; what it leaves of them is free once these have ended, and the
// lane of compute steps does not wait for that by itself. room: bytes beside those of the step and
// of all swap-ins up to it, of which the last one is before `swap_in`.
double Evaluator::leftovers_until(const ExpandedSchedule& expanded, std::size_t room,
                                  std::uint32_t swap_in, double now) {
  for (;;) {
    for (; swap_outs_ended_ < freed_ && departed_[swap_outs_ended_] <= now; ++swap_outs_ended_) {
      promised_ -= pending_bytes_[swap_outs_ended_];
    }
    for (; swap_ins_begun_ < swap_in && begun_[swap_ins_begun_] <= now; ++swap_ins_begun_) {
      awaiting_ -= bytes_of(expanded.intervals[swap_ins_[swap_ins_begun_].interval]);
    }
    const std::size_t left = promised_ - std::min(promised_, awaiting_);
    if (swap_outs_ended_ == freed_ || pending_ + left <= room) {
      return now;
    }
    now = departed_[swap_outs_ended_];
  }
}

void Evaluator::start_lanes(const ExpandedSchedule& expanded) {
  const std::size_t count = expanded.steps.size();
  ends_.assign(count, 0);
  starts_.assign(count, 0);
  departed_.assign(swap_outs_.size(), 0);
  begun_.assign(swap_ins_.size(), 0);
  pending_bytes_.resize(swap_outs_.size());
  for (std::size_t d = 0; d < swap_outs_.size(); ++d) {
    pending_bytes_[d] = bytes_of(expanded.intervals[swap_outs_[d].interval]);
  }
  ready_.assign(count, 0);
  freed_ = started_ = pending_ = 0;
  swap_outs_ended_ = promised_ = awaiting_ = 0;
  swap_ins_begun_ = 0;
  in_ = 0;
  disk_.start(pending_bytes_);
}

void Evaluator::run_lanes(const ExpandedSchedule& expanded) {
  start_lanes(expanded);
  const std::size_t count = expanded.steps.size();
  double compute = 0, out = 0;
  std::uint32_t next_return = 0;
  for (std::uint32_t s = 0; s < count; ++s) {
    const std::size_t room = limit(s) - std::min(bytes_[s], limit(s));
    // bytes_ already includes the tensor that returns here, but the step itself need not wait for
    // its room.
    std::size_t returning = 0;
    for (std::uint32_t r = next_return; r < swap_ins_.size() && swap_ins_[r].position == s; ++r) {
      returning += bytes_of(expanded.intervals[swap_ins_[r].interval]);
    }
    compute = std::max(compute, free_until(room + returning));
    for (; next_return < swap_ins_.size() && swap_ins_[next_return].position == s; ++next_return) {
      begin_swap_in(expanded, next_return, room);
    }
    free_for(s, room, std::nullopt);
    compute = std::max({compute, ready_[s], waits_until_});
    compute = leftovers_until(expanded, room, next_return, compute);
    starts_[s] = compute;
    if (expanded.steps[s].kind == StepKind::compute) {
      compute += node_seconds_[expanded.steps[s].id];
    }
    ends_[s] = compute;
    for (; started_ < swap_outs_.size() &&
           expanded.intervals[swap_outs_[started_].interval].last == s;
         ++started_) {
      const LiveInterval& interval = expanded.intervals[swap_outs_[started_].interval];
      out = disk_.admit(started_, std::max(out, ends_[interval.written])) +
            swap_out_seconds_[interval.root];
      departed_[started_] = out;
      disk_.arrived(started_, out);
      compute = waits_for_out(sync_) ? std::max(compute, out) : compute;
      pending_ += pending_bytes_[started_];
    }
  }
  result_.seconds = std::max({compute, out, in_, disk_.end()});
}

// Returns the time at which enough swap-outs have ended for the rest to fit.
double Evaluator::free_until(std::size_t room) const {
  double until = 0;
  std::size_t pending = pending_;
  for (std::size_t d = freed_; pending > room && d < started_; ++d) {
    pending -= pending_bytes_[d];
    until = departed_[d];
  }
  return until;
}

void Evaluator::begin_swap_in(const ExpandedSchedule& expanded, std::uint32_t r, std::size_t room) {
  const PlacedSwapIn& one = swap_ins_[r];
  free_for(one.position, room, r);
  double start = std::max({in_, waits_until_, one.position > 0 ? ends_[one.position - 1] : 0});
  const std::int32_t left = swap_out_of_[expanded.intervals[one.interval].root];
  if (left >= 0) {
    // It waits for its own swap-out, and so for all earlier ones: their bytes are free from here
    // on.
    const auto own = static_cast<std::size_t>(left);
    start = std::max({start, departed_[own], disk_.back(own)});
    while (freed_ <= own) {
      swap_outs_[freed_].freed_for_swap_in = r;
      free_next();
    }
  }
  begun_[r] = start;
  awaiting_ += bytes_of(expanded.intervals[one.interval]);
  in_ = start + swap_in_seconds_[expanded.intervals[one.interval].root];
  if (left >= 0) {
    disk_.returned(static_cast<std::size_t>(left), in_);
  }
  const std::uint32_t use = expanded.intervals[one.interval].first;
  ready_[use] = std::max(ready_[use], in_);
}

void Evaluator::tighten(const ExpandedSchedule& expanded, double slack) {
  if (swap_outs_.empty()) {
    return;
  }
  if (!waits_for_in(sync_)) {
    await_swap_outs(expanded);
  }
  free_early(expanded);
  if (waits_for_in(sync_)) {
    return;
  }
  // Indexed by swap-in: it waits for a swap-out and frees its bytes.
  std::vector<bool> frees(swap_ins_.size());
  for (const PlacedSwapOut& one : swap_outs_) {
    if (one.freed_for_swap_in) {
      frees[*one.freed_for_swap_in] = true;
    }
  }
  double latest = result_.seconds;                         // start of the next copy
  auto next = static_cast<std::uint32_t>(starts_.size());  // position of the next swap-in
  for (std::size_t r = swap_ins_.size(); r-- > 0;) {
    PlacedSwapIn& one = swap_ins_[r];
    const std::uint32_t use = expanded.intervals[one.interval].first;
    latest =
        std::min(latest, starts_[use]) - swap_in_seconds_[expanded.intervals[one.interval].root];
    while (!frees[r] && one.position < std::min(use, next) &&
           ends_[one.position] + slack <= latest) {
      ++one.position;
    }
    next = one.position;
  }
}

// A swap-in that waits for swap-outs takes over their bytes only then. No step may use these bytes
// before: it would have to wait as well.
void Evaluator::await_swap_outs(const ExpandedSchedule& expanded) {
  std::vector<double> free_at = begun_;  // by swap-in
  for (std::size_t d = 0; d < swap_outs_.size(); ++d) {
    if (const auto by = swap_outs_[d].freed_for_swap_in) {
      free_at[*by] = std::min(begun_[*by], departed_[d]);  // of its last swap-out
    }
  }
  std::uint32_t least = 0;  // the position of the one before, which it must not pass
  for (std::size_t r = 0; r < swap_ins_.size(); ++r) {
    PlacedSwapIn& one = swap_ins_[r];
    const std::uint32_t use = expanded.intervals[one.interval].first;
    one.position = std::max(one.position, least);
    while (one.position < use && ends_[one.position] <= free_at[r]) {
      ++one.position;
    }
    least = one.position;
  }
}

void Evaluator::free_early(const ExpandedSchedule& expanded) {
  for (std::size_t d = 0; d < swap_outs_.size(); ++d) {
    PlacedSwapOut& one = swap_outs_[d];
    auto step = expanded.intervals[one.interval].last + 1;
    while (step < starts_.size() && starts_[step] < departed_[d]) {
      ++step;
    }
    // If a swap-in before an earlier step already waits for it, that wait stays.
    const std::uint32_t behind = one.freed_for_step.value_or(
        one.freed_for_swap_in ? swap_ins_[*one.freed_for_swap_in].position
                              : static_cast<std::uint32_t>(starts_.size()));
    if (step < behind) {
      one.freed_for_step = step;
      one.freed_for_swap_in.reset();
    }
  }
}

}  // namespace cnn::lms
