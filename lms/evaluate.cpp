#include "lms/evaluate.h"

#include <algorithm>
#include <numeric>

namespace cnn::lms {

Evaluator::Evaluator(const Outline& outline, std::size_t device_bytes, SyncMode sync)
    : outline_(outline), device_bytes_(device_bytes), sync_(sync) {}

const Evaluation& Evaluator::evaluate(const Unrolled& unrolled) {
  weigh(unrolled);
  run(unrolled);
  return result_;
}

const Evaluation& Evaluator::estimate(const Unrolled& unrolled, double seconds) {
  weigh(unrolled);
  if (result_.fits && result_.seconds <= seconds) {
    run(unrolled);
  }
  return result_;
}

void Evaluator::weigh(const Unrolled& unrolled) {
  result_ = {.seconds = unrolled.seconds};
  add_stays(unrolled);
  measure();
}

void Evaluator::run(const Unrolled& unrolled) {
  find_copies(unrolled);
  if (departures_.empty()) {
    return;
  }
  if (!waits_for_in(sync_)) {
    bring_forward(unrolled);
    measure();
  }
  run_lanes(unrolled);
}

// First differences, which wrap around, then their sum.
void Evaluator::add_stays(const Unrolled& unrolled) {
  bytes_.assign(unrolled.steps.size() + 1, 0);
  for (const Stay& stay : unrolled.stays) {
    const std::size_t bytes = outline_.roots[stay.root].bytes;
    bytes_[stay.first] += bytes;
    bytes_[stay.last + 1] -= bytes;
  }
  std::partial_sum(bytes_.begin(), bytes_.end(), bytes_.begin());
  for (const TakeOver& taken : unrolled.taken_over) {
    bytes_[taken.step] -= taken.bytes;
  }
  for (std::size_t s = 0; s < unrolled.steps.size(); ++s) {
    if (unrolled.steps[s].kind == StepKind::compute) {
      bytes_[s] += outline_.nodes[unrolled.steps[s].id].workspace;
    }
  }
}

void Evaluator::find_copies(const Unrolled& unrolled) {
  departures_.clear();
  returns_.clear();
  for (std::uint32_t s = 0; s < unrolled.stays.size(); ++s) {
    if (unrolled.stays[s].leaves) {
      departures_.push_back({.stay = s});
    }
    if (unrolled.stays[s].returns) {
      returns_.push_back({.stay = s, .position = unrolled.stays[s].first});
    }
  }
  std::ranges::stable_sort(departures_, {},
                           [&](const Departure& d) { return unrolled.stays[d.stay].last; });
}

// Each return as far towards the start of the backward pass as there is room all the way to its
// use, and no further than the one before it.
void Evaluator::bring_forward(const Unrolled& unrolled) {
  auto least = static_cast<std::uint32_t>(unrolled.backward);
  for (Return& one : returns_) {
    const std::size_t bytes = outline_.roots[unrolled.stays[one.stay].root].bytes;
    while (one.position > least && bytes_[one.position - 1] + bytes <= device_bytes_) {
      --one.position;
      bytes_[one.position] += bytes;
    }
    least = std::max(least, one.position);
  }
}

void Evaluator::measure() {
  result_.excess = 0;
  for (std::size_t s = 0; s + 1 < bytes_.size(); ++s) {
    result_.peak = std::max(result_.peak, bytes_[s]);
    if (bytes_[s] > device_bytes_) {
      result_.excess += static_cast<double>(bytes_[s] - device_bytes_);
    }
  }
  result_.fits = result_.peak <= device_bytes_;
}

double Evaluator::seconds_of(std::uint32_t stay, const Unrolled& unrolled, double rate) const {
  const auto bytes = static_cast<double>(outline_.roots[unrolled.stays[stay].root].bytes);
  return outline_.copy_latency + (rate > 0 ? bytes / rate : 0);
}

// Oldest departures first, until there is room beside what is still leaving.
void Evaluator::free_for(std::uint32_t step, std::size_t room,
                         std::optional<std::uint32_t> for_return) {
  waits_until_ = 0;
  while (pending_ > room && freed_ < started_) {
    Departure& departure = departures_[freed_];
    if (for_return) {
      departure.freed_for_return = for_return;
    } else {
      departure.freed_for_step = step;
    }
    waits_until_ = departed_[freed_];
    pending_ -= pending_bytes_[freed_];
    ++freed_;
  }
}

void Evaluator::run_lanes(const Unrolled& unrolled) {
  const std::size_t count = unrolled.steps.size();
  ends_.assign(count, 0);
  starts_.assign(count, 0);
  departed_.assign(departures_.size(), 0);
  begun_.assign(returns_.size(), 0);
  departure_of_.assign(outline_.roots.size(), -1);
  pending_bytes_.resize(departures_.size());
  for (std::size_t d = 0; d < departures_.size(); ++d) {
    const Stay& stay = unrolled.stays[departures_[d].stay];
    pending_bytes_[d] = outline_.roots[stay.root].bytes;
    departure_of_[stay.root] = static_cast<std::int32_t>(d);
  }
  ready_.assign(count, 0);
  freed_ = started_ = pending_ = 0;
  in_ = 0;
  double compute = 0, out = 0;
  std::uint32_t next_return = 0;
  for (std::uint32_t s = 0; s < count; ++s) {
    const std::size_t room = device_bytes_ - std::min(bytes_[s], device_bytes_);
    // The tensor that returns here is in bytes_ already, but the step itself need not wait for its
    // room.
    std::size_t returning = 0;
    for (std::uint32_t r = next_return; r < returns_.size() && returns_[r].position == s; ++r) {
      returning += outline_.roots[unrolled.stays[returns_[r].stay].root].bytes;
    }
    compute = std::max(compute, free_until(room + returning));
    for (; next_return < returns_.size() && returns_[next_return].position == s; ++next_return) {
      begin_return(unrolled, next_return, room);
    }
    free_for(s, room, std::nullopt);
    compute = std::max({compute, ready_[s], waits_until_});
    starts_[s] = compute;
    if (unrolled.steps[s].kind == StepKind::compute) {
      compute += outline_.nodes[unrolled.steps[s].id].seconds;
    }
    ends_[s] = compute;
    for (; started_ < departures_.size() && unrolled.stays[departures_[started_].stay].last == s;
         ++started_) {
      const Stay& stay = unrolled.stays[departures_[started_].stay];
      out = std::max(out, ends_[stay.written]) +
            seconds_of(departures_[started_].stay, unrolled, outline_.out_bytes_per_second);
      departed_[started_] = out;
      compute = waits_for_out(sync_) ? std::max(compute, out) : compute;
      pending_ += pending_bytes_[started_];
    }
  }
  result_.seconds = std::max({compute, out, in_});
}

// When so many departures have ended that the others fit.
double Evaluator::free_until(std::size_t room) const {
  double until = 0;
  std::size_t pending = pending_;
  for (std::size_t d = freed_; pending > room && d < started_; ++d) {
    pending -= pending_bytes_[d];
    until = departed_[d];
  }
  return until;
}

void Evaluator::begin_return(const Unrolled& unrolled, std::uint32_t r, std::size_t room) {
  const Return& one = returns_[r];
  free_for(one.position, room, r);
  double start = std::max({in_, waits_until_, one.position > 0 ? ends_[one.position - 1] : 0});
  const std::int32_t left = departure_of_[unrolled.stays[one.stay].root];
  if (left >= 0) {
    // It waits for its own departure, and so for all before it: their bytes are free from here on.
    const auto own = static_cast<std::size_t>(left);
    start = std::max(start, departed_[own]);
    for (; freed_ <= own; ++freed_) {
      departures_[freed_].freed_for_return = r;
      pending_ -= pending_bytes_[freed_];
    }
  }
  begun_[r] = start;
  in_ = start + seconds_of(one.stay, unrolled, outline_.in_bytes_per_second);
  const std::uint32_t use = unrolled.stays[one.stay].first;
  ready_[use] = std::max(ready_[use], in_);
}

void Evaluator::tighten(const Unrolled& unrolled, double slack) {
  if (departures_.empty()) {
    return;
  }
  if (!waits_for_in(sync_)) {
    await_departures(unrolled);
  }
  free_early(unrolled);
  if (waits_for_in(sync_)) {
    return;
  }
  std::vector<bool> frees(returns_.size());  // what waits for a departure gives its bytes back
  for (const Departure& one : departures_) {
    if (one.freed_for_return) {
      frees[*one.freed_for_return] = true;
    }
  }
  double latest = result_.seconds;  // at which the copy behind this one starts
  auto next = static_cast<std::uint32_t>(starts_.size());  // position of the return behind this one
  for (std::size_t r = returns_.size(); r-- > 0;) {
    Return& one = returns_[r];
    const std::uint32_t use = unrolled.stays[one.stay].first;
    latest = std::min(latest, starts_[use]) -
             seconds_of(one.stay, unrolled, outline_.in_bytes_per_second);
    while (!frees[r] && one.position < std::min(use, next) &&
           ends_[one.position] + slack <= latest) {
      ++one.position;
    }
    next = one.position;
  }
}

// A return that waits for departures takes their bytes only then. Until then no step may be given
// them: it would wait as well.
void Evaluator::await_departures(const Unrolled& unrolled) {
  for (std::size_t r = 0; r < returns_.size(); ++r) {
    Return& one = returns_[r];
    const std::uint32_t use = unrolled.stays[one.stay].first;
    while (one.position < use && ends_[one.position] <= begun_[r]) {
      ++one.position;
    }
  }
}

void Evaluator::free_early(const Unrolled& unrolled) {
  for (std::size_t d = 0; d < departures_.size(); ++d) {
    Departure& one = departures_[d];
    auto step = unrolled.stays[one.stay].last + 1;
    while (step < starts_.size() && starts_[step] < departed_[d]) {
      ++step;
    }
    // Where a return waits for it in front of an earlier step, that stays.
    const std::uint32_t behind = one.freed_for_step.value_or(
        one.freed_for_return ? returns_[*one.freed_for_return].position
                             : static_cast<std::uint32_t>(starts_.size()));
    if (step < behind) {
      one.freed_for_step = step;
      one.freed_for_return.reset();
    }
  }
}

}  // namespace cnn::lms
