#include "lms/bound.h"

#include <algorithm>
#include <array>
#include <functional>
#include <iterator>
#include <limits>
#include <numeric>
#include <variant>
#include <vector>

#include "lms/stall_windows.h"
#include "lms/stash.h"
#include "lms/summary.h"
#include "runtime/memory_plan.h"

namespace cnn::lms {
namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();

double seconds_per_byte(double bytes_per_second) {
  return bytes_per_second > 0 ? 1 / bytes_per_second : 0;
}

// Bytes that recomputation frees at one step, as a function of its seconds: piecewise linear and
// concave.
class Curve {
 public:
  void add(double seconds, double bytes) {
    points_.push_back({points_.back().seconds + seconds, points_.back().bytes + bytes});
  }
  double bytes() const { return points_.back().bytes; }

  double bytes(double seconds) const {
    const auto above = std::ranges::upper_bound(points_, seconds, {}, &Point::seconds);
    if (above == points_.end()) {
      return points_.back().bytes;
    }
    const Point& from = *std::prev(above);
    const double share = (seconds - from.seconds) / (above->seconds - from.seconds);
    return from.bytes + share * (above->bytes - from.bytes);
  }

  // Returns the seconds for up to so many bytes, while a byte takes at most seconds_per_byte.
  double seconds(double bytes, double seconds_per_byte) const {
    for (std::size_t p = 0; p + 1 < points_.size(); ++p) {
      const Point& from = points_[p];
      const Point& to = points_[p + 1];
      const double slope = (to.seconds - from.seconds) / (to.bytes - from.bytes);
      if (bytes <= to.bytes || slope > seconds_per_byte) {
        const double more = slope > seconds_per_byte ? 0 : std::max(0.0, bytes - from.bytes);
        return from.seconds + slope * more;
      }
    }
    return points_.back().seconds;
  }

 private:
  struct Point {
    double seconds = 0, bytes = 0;
  };
  std::vector<Point> points_{{}};
};

// A step that exceeds the budget.
struct Peak {
  double before = 0, seconds = 0;  // of the step
  double excess = 0;               // bytes that must leave
  double removable = 0;            // bytes that can leave
  double padding = 0;              // bytes of the copyable ones that copies skip
  Curve again;
  // If b bytes leave before the step, that ends at first_out + b / rate or later. If b return after
  // it, the whole step ends b / rate + tail after it or later.
  double first_out = 0, tail = 0;
  // The host holds so much during the step; the rest has been written to the disk before it, not
  // before first_made, and is read after it, last_tail or more before the end.
  double first_made = infinity, last_tail = 0;
  double worth_it = 0;  // seconds of later recomputation that shorten the wait before it by more
};

class Relaxation {
 public:
  Relaxation(const Request& request, const Pressure& pressure, bool repeats)
      : pressure_(pressure),
        repeats_(repeats),
        out_(seconds_per_byte(request.costs.out_bytes_per_second)),
        in_(seconds_per_byte(request.costs.in_bytes_per_second)),
        store_(seconds_per_byte(request.costs.store_bytes_per_second)),
        load_(seconds_per_byte(request.costs.load_bytes_per_second)),
        host_(static_cast<double>(aligned(request.budget.host))),
        off_device_(static_cast<double>(aligned(request.budget.swap_bytes()))),
        device_(static_cast<double>(aligned(request.budget.device))),
        away_(pressure.movables.size()),
        next_(pressure.movables.size()),
        needed_(pressure.steps.size()) {
    set_joint(request.costs);
    sort_items();
    for (std::uint32_t s = 0; s < pressure.steps.size(); ++s) {
      if (pressure.steps[s].live > device_) {
        add_peak(s);
      }
    }
  }

  // Minimises over the seconds of recomputation by branch and bound: splits the interval with the
  // lowest bound, which costs its low end and frees what its high end frees.
  double least() const {
    constexpr int max_cuts = 60;
    constexpr double close_enough = 1e-6;
    std::vector<Interval> open{interval(0, longest_)};
    double reached = std::min(seconds(0, 0), seconds(longest_, longest_));
    for (int cut = 0; cut < max_cuts; ++cut) {
      const Interval best = open.back();
      if (best.seconds == infinity || best.seconds >= (1 - close_enough) * reached) {
        break;
      }
      open.pop_back();
      const double middle = (best.low + best.high) / 2;
      reached = std::min(reached, seconds(middle, middle));
      open.push_back(interval(best.low, middle));
      open.push_back(interval(middle, best.high));
      std::ranges::sort(open, std::ranges::greater(), &Interval::seconds);
    }
    return open.back().seconds;
  }

  // Returns the arena below which some step holds unmovable bytes.
  double min_bytes() const {
    double result = 0;
    for (const PressureStep& step : pressure_.steps) {
      double bytes = step.live;
      for (const std::uint32_t m : step.away) {
        bytes -= may_go(pressure_.movables[m]) ? pressure_.movables[m].bytes : 0;
      }
      result = std::max(result, bytes);
    }
    return result;
  }

 private:
  struct Interval {
    double low = 0, high = 0;
    double seconds = 0;
  };
  // A movable that can return without a copy.
  struct Item {
    std::uint32_t movable = 0;
    bool late = false;  // for steps of the backward pass
    double seconds = 0;
  };

  Interval interval(double low, double high) const { return {low, high, seconds(low, high)}; }

  bool may_repeat(const Movable& one) const {
    return one.on_host || (repeats_ && one.again != Movable::never);
  }
  bool may_go(const Movable& one) const {
    return (off_device_ > 0 && one.may_copy) || may_repeat(one);
  }

  // Sets the seconds per byte for both directions together: out and back.
  void set_joint(const Costs& costs) {
    const double both = costs.both_bytes_per_second;
    if (both > 0 && out_ > 0 && in_ > 0) {
      joint_ = 2 / std::max({both, costs.out_bytes_per_second, costs.in_bytes_per_second});
    }
  }

  // Sorts by seconds per byte, ascending.
  void sort_items() {
    const std::vector<Movable>& all = pressure_.movables;
    for (std::uint32_t m = 0; m < all.size(); ++m) {
      if (may_repeat(all[m])) {
        items_.push_back({m, false, all[m].again});
        items_.push_back({m, true, all[m].again_late});
        longest_ += std::max(all[m].again, all[m].again_late);
      }
    }
    std::ranges::stable_sort(items_, [&](const Item& a, const Item& b) {
      return a.seconds * all[b.movable].bytes < b.seconds * all[a.movable].bytes;
    });
  }

  void add_peak(std::uint32_t s) {
    const PressureStep& step = pressure_.steps[s];
    Peak peak{
        .before = step.before, .seconds = step.seconds, .excess = step.live - device_, .again = {}};
    std::fill(away_.begin(), away_.end(), false);
    for (const std::uint32_t m : step.away) {
      const Movable& one = pressure_.movables[m];
      away_[m] = true;
      peak.removable += may_go(one) ? one.bytes : 0;
      peak.padding += one.may_copy && !one.on_host ? one.padding : 0;
    }
    for (const Item& item : items_) {
      const Movable& one = pressure_.movables[item.movable];
      if (away_[item.movable] && item.late == (s >= one.first_backward) &&
          peak.again.bytes() < peak.excess) {
        peak.again.add(item.seconds, one.bytes);
      }
    }
    find_ends(s, peak);
    if (out_ > 0) {
      const double unhurried = (peak.before - peak.first_out) / out_;  // bytes that leave in time
      peak.worth_it = peak.again.seconds(peak.excess - peak.padding - unhurried, out_);
    }
    peaks_.push_back(std::move(peak));
  }

  // Bytes leave only once they exist: of b bytes, those created before the end of some step may
  // have left by then. And of b bytes, only those first needed after some step may return after
  // that step.
  void find_ends(std::uint32_t s, Peak& peak) {
    const std::vector<PressureStep>& steps = pressure_.steps;
    std::fill(needed_.begin(), needed_.end(), 0);
    double made = 0;
    for (const std::uint32_t m : steps[s].away) {
      const Movable& one = pressure_.movables[m];
      if (one.on_host || !one.may_copy) {
        continue;
      }
      const PressureStep& maker = steps[one.made];
      peak.first_made = std::min(peak.first_made, maker.before + maker.seconds);
      peak.first_out = std::max(peak.first_out, maker.before + maker.seconds - made * out_);
      made += one.bytes - one.padding;
      while (one.uses[next_[m]] <= s) {  // peaks come in order
        ++next_[m];
      }
      needed_[one.in_parts ? one.last() : one.uses[next_[m]]] += one.bytes - one.padding;
    }
    double late = 0;
    for (std::size_t k = steps.size(); k-- > s + 1;) {
      if (needed_[k] > 0) {
        peak.last_tail = late > 0 ? peak.last_tail : pressure_.seconds - steps[k].before;
        peak.tail = std::max(peak.tail, pressure_.seconds - steps[k].before - late * in_);
        late += needed_[k];
      }
    }
  }

  // Returns the minimum seconds of a step with at least `least` seconds of recomputation, which
  // frees as much as `most` seconds do.
  double seconds(double least, double most) const {
    constexpr double rounding = 1e-9;
    double result = pressure_.seconds + least;
    double lead = 0;  // delay of compute by copies out so far
    for (const Peak& peak : peaks_) {
      const double gone = peak.excess - peak.again.bytes(most);  // by copies
      if (gone > off_device_ + rounding * peak.excess || peak.excess > peak.removable) {
        return infinity;
      }
      const double copied = std::max(0.0, gone - peak.padding);
      if (copied > 0) {
        lead = std::max(lead, peak.first_out + copied * out_ - peak.before);
        result = std::max({result, pressure_.seconds + out_and_again(peak, most),
                           lead + peak.before + peak.seconds + copied * in_ + peak.tail,
                           peak.first_out + copied * joint_ + peak.tail});
      }
      if (const double stored = copied - host_; stored > 0) {
        lead = std::max(lead, peak.first_made + stored * store_ - peak.before);
        result = std::max({result, lead + pressure_.seconds,
                           lead + peak.before + peak.seconds + stored * load_ + peak.last_tail});
      }
    }
    return result;
  }

  // Returns the delay of compute: a copy out delays it before the peak, and afterwards it
  // recomputes tensors that were not copied.
  double out_and_again(const Peak& peak, double most) const {
    const double again = std::min(most, peak.worth_it);
    const double copied = std::max(0.0, peak.excess - peak.padding - peak.again.bytes(again));
    return again + std::max(0.0, peak.first_out + copied * out_ - peak.before);
  }

  const Pressure& pressure_;
  bool repeats_;
  double out_, in_, joint_ = 0;        // seconds per byte
  double store_, load_;                // seconds per byte, of the disk
  double host_, off_device_, device_;  // bytes; off_device_: of host and disk
  double longest_ = 0;                 // seconds of all possible recomputation
  std::vector<Item> items_;
  std::vector<Peak> peaks_;
  std::vector<bool> away_;         // by movable: at the current step
  std::vector<std::size_t> next_;  // by movable: its first use after the current step
  std::vector<double> needed_;     // by step: bytes
};

// Returns the request with another budget and other options, which it references.
Request changed(const Request& request, const Budget& budget, const Options& options) {
  return {.graph = request.graph,
          .specs = request.specs,
          .schedule = request.schedule,
          .backward = request.backward,
          .costs = request.costs,
          .budget = budget,
          .variable_bytes = request.variable_bytes,
          .options = options};
}

// Returns the seconds of the nodes of the lane that has the most. A lane runs one step after
// another, so no plan is faster; nodes of a copy lane move variables whose place is the host.
double busiest_lane(const Request& request) {
  std::array<double, lane_count> seconds{};
  for (std::size_t n = 0; n < request.graph.nodes().size(); ++n) {
    const Lane lane = request.graph.nodes()[n].op->lane();
    if (lane != Lane::communicate) {  // an exchange takes no time of its own in a plan
      seconds.at(static_cast<std::size_t>(lane)) += request.costs.seconds[n];
    }
  }
  return *std::ranges::max_element(seconds);
}

// Returns whether all swapped tensors are movable in the bound of options that let all leave.
bool moves_only_known(const Request& request, const Schedule& schedule, bool within_pass) {
  std::vector<bool> is_known(request.graph.tensors().size());
  for (const Stashed& one : stashed(request.graph, request.schedule, request.backward)) {
    is_known[index_of(one.tensor)] = true;
  }
  if (within_pass) {
    const Options any;
    for (const TensorId tensor : movable_within_passes(changed(request, request.budget, any))) {
      is_known[index_of(tensor)] = true;
    }
  }
  return std::ranges::all_of(schedule.steps, [&](const Step& step) {
    const auto* fetch = std::get_if<Fetch>(&step.action);
    return fetch == nullptr || is_known[index_of(fetch->tensor)] ||
           request.graph.info(fetch->tensor).role == Role::input;
  });
}

// Returns whether a node runs again before the forward pass has ended.
bool repeats_in_forward(const Request& request, const Schedule& schedule) {
  std::vector<bool> is_forward(request.graph.nodes().size()), has_run(is_forward.size());
  for (std::size_t s = 0; s < index_of(request.backward) && s < request.schedule.steps.size();
       ++s) {
    if (const auto* compute = std::get_if<Compute>(&request.schedule.steps[s].action)) {
      is_forward[index_of(compute->node)] = true;
    }
  }
  bool repeats = false;
  for (const Step& step : schedule.steps) {
    const auto* compute = std::get_if<Compute>(&step.action);
    if (compute == nullptr || !is_forward[index_of(compute->node)]) {
      continue;
    }
    if (repeats && !has_run[index_of(compute->node)]) {
      return true;
    }
    repeats = repeats || has_run[index_of(compute->node)];
    has_run[index_of(compute->node)] = true;
  }
  return false;
}

// Returns the bound of all windows. They count tensors that a plan may also move while one pass is
// under way, where that is allowed: then the proof does not hold.
double seconds_with_windows(const Request& request, const Pressure& pressure, bool repeats) {
  return request.options.within_pass
             ? 0.0
             : pressure.seconds + seconds_in_windows(request, pressure, repeats);
}

// Returns the seconds of the bound of plans that may recompute, or may not.
double seconds_of_bound(const Request& request, const Pressure& pressure, bool repeats) {
  return std::max({Relaxation(request, pressure, repeats).least(), busiest_lane(request),
                   seconds_with_windows(request, pressure, repeats)});
}

}  // namespace

double lower_bound_of(const Request& request, const Schedule& schedule) {
  Options any;
  any.within_pass =
      repeats_in_forward(request, schedule) || !moves_only_known(request, schedule, false);
  if (first_runs(request.graph, schedule) != first_runs(request.graph, request.schedule) ||
      !moves_only_known(request, schedule, any.within_pass)) {
    return busiest_lane(request);
  }
  return lower_bound(changed(request, request.budget, any)).seconds;
}

BudgetBounds::BudgetBounds(const Request& request)
    : request_(request), pressure_(pressure(request)) {}

double BudgetBounds::seconds(std::size_t device_bytes) {
  {
    const std::lock_guard lock(mutex_);
    if (const auto known = known_.find(device_bytes); known != known_.end()) {
      return known->second;
    }
  }
  Budget budget = request_.budget;
  budget.device = device_bytes;
  const double seconds = seconds_of_bound(changed(request_, budget, request_.options), pressure_,
                                          request_.options.recompute != Recomputation::off);
  const std::lock_guard lock(mutex_);
  known_.emplace(device_bytes, seconds);
  return seconds;
}

Bound lower_bound(const Request& request) { return lower_bound(request, pressure(request)); }

Bound lower_bound(const Request& request, const Pressure& pressure) {
  const Relaxation swaps(request, pressure, false);
  const double moved = busiest_lane(request);
  const double fluid_swaps = std::max(swaps.least(), moved);
  const double swap_only = std::max(fluid_swaps, seconds_with_windows(request, pressure, false));
  if (request.options.recompute == Recomputation::off) {
    return {.seconds = swap_only,
            .seconds_swap_only = swap_only,
            .seconds_fluid = fluid_swaps,
            .min_bytes = static_cast<std::size_t>(swaps.min_bytes())};
  }
  const Relaxation all(request, pressure, true);
  const double fluid = std::max(all.least(), moved);
  return {.seconds = std::max(fluid, seconds_with_windows(request, pressure, true)),
          .seconds_swap_only = swap_only,
          .seconds_fluid = fluid,
          .min_bytes = static_cast<std::size_t>(all.min_bytes())};
}

}  // namespace cnn::lms
