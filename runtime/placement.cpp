#include "runtime/placement.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <functional>
#include <iterator>
#include <limits>
#include <numeric>
#include <utility>

#include "runtime/divide_up.h"
#include "runtime/linear_congruence.h"
#include "runtime/skyline.h"

namespace cnn {
namespace {

using Order = std::vector<std::uint32_t>;  // indices of intervals

// Placed intervals, sorted by offset. First and last steps are separate arrays of a small type,
// since nearly all time goes into scanning them. Number: a signed type, as SSE2 has no other
// comparisons, that holds all steps.
template <class Number>
class PlacedIntervals {
 public:
  explicit PlacedIntervals(std::size_t capacity)
      : overlaps_(round_up(capacity, word)), lower_(capacity), upper_(capacity) {
    offsets_.reserve(capacity);
    ends_.reserve(capacity);
    by_offset_.reserve(capacity);
    firsts_.reserve(capacity);
    lasts_.reserve(capacity);
  }

  // Returns an offset in a gap between concurrently live intervals, else above them: the smallest
  // gap that fits, or the lowest.
  std::size_t find_offset(const Interval& interval, bool lowest) {
    const std::size_t count = find_neighbours(interval);
    constexpr std::size_t none = std::numeric_limits<std::size_t>::max();
    std::size_t best = 0;
    std::size_t best_gap = none;
    std::size_t cursor = 0;
    for (std::size_t i = 0; i < count && !(lowest && best_gap != none); ++i) {
      const std::size_t gap = lower_[i] > cursor ? lower_[i] - cursor : 0;
      if (gap >= interval.bytes && gap < best_gap) {
        best = cursor;
        best_gap = gap;
      }
      cursor = std::max(cursor, upper_[i]);
    }
    return best_gap == none ? cursor : best;
  }

  void insert(const Interval& interval, std::size_t offset) {
    const auto offset_of = [&](std::uint32_t i) { return offsets_[i]; };
    const auto at =
        std::ranges::upper_bound(by_offset_, offset, {}, offset_of) - by_offset_.begin();
    by_offset_.insert(by_offset_.begin() + at, static_cast<std::uint32_t>(offsets_.size()));
    offsets_.push_back(offset);
    ends_.push_back(offset + interval.bytes);
    firsts_.insert(firsts_.begin() + at, static_cast<Number>(interval.first));
    lasts_.insert(lasts_.begin() + at, static_cast<Number>(interval.last));
  }

 private:
  // Compares all intervals without a branch, so that the compiler uses vectors; then visits the few
  // that overlap in time.
  std::size_t find_neighbours(const Interval& interval) {
    const auto first = static_cast<Number>(interval.first);
    const auto last = static_cast<Number>(interval.last);
    for (std::size_t i = 0; i < firsts_.size(); ++i) {
      overlaps_[i] = static_cast<std::uint8_t>(firsts_[i] <= last) &
                     static_cast<std::uint8_t>(lasts_[i] >= first);
    }
    std::size_t count = 0;
    for (std::size_t from = 0; from < firsts_.size(); from += word) {
      std::uint64_t bytes = 0;
      std::memcpy(&bytes, &overlaps_[from], word);
      for (; bytes != 0; bytes &= bytes - 1) {
        const std::uint32_t i =
            by_offset_[from + static_cast<std::size_t>(std::countr_zero(bytes)) / 8];
        lower_[count] = offsets_[i];
        upper_[count] = ends_[i];
        ++count;
      }
    }
    return count;
  }

  static constexpr std::size_t word = sizeof(std::uint64_t);

  std::vector<std::size_t> offsets_, ends_;  // in the order of their placement
  std::vector<std::uint32_t> by_offset_;     // indices of these
  std::vector<Number> firsts_, lasts_;       // by offset
  // Holds 1 for each placed interval that overlaps in time, else 0, and 0 behind the last one.
  std::vector<std::uint8_t> overlaps_;
  std::vector<std::size_t> lower_, upper_;  // of the neighbours found
};

template <class Number>
Placement place_in(const Order& order, const std::vector<Interval>& intervals, bool lowest) {
  Placement result{.offsets = std::vector<std::size_t>(intervals.size())};
  PlacedIntervals<Number> placed(intervals.size());
  for (const std::uint32_t index : order) {
    result.offsets[index] = placed.find_offset(intervals[index], lowest);
    placed.insert(intervals[index], result.offsets[index]);
    result.height = std::max(result.height, result.offsets[index] + intervals[index].bytes);
  }
  return result;
}

// Returns whether 16 bits hold all steps.
bool is_short(const std::vector<Interval>& intervals) {
  return std::ranges::all_of(intervals, [](const Interval& interval) {
    return std::cmp_less_equal(interval.last, std::numeric_limits<std::int16_t>::max());
  });
}

Placement place_in(const Order& order, const std::vector<Interval>& intervals, bool lowest) {
  return is_short(intervals) ? place_in<std::int16_t>(order, intervals, lowest)
                             : place_in<std::int32_t>(order, intervals, lowest);
}

// Returns the live bytes of every step.
std::vector<std::size_t> load(const std::vector<Interval>& intervals) {
  std::uint32_t steps = 0;
  for (const Interval& interval : intervals) {
    steps = std::max(steps, interval.last + 1);
  }
  std::vector<std::size_t> bytes(steps + 1);
  for (const Interval& interval : intervals) {  // differences; wrap-around cancels in the sum
    bytes[interval.first] += interval.bytes;
    bytes[interval.last + 1] -= interval.bytes;
  }
  std::partial_sum(bytes.begin(), bytes.end(), bytes.begin());
  return bytes;
}

// The weight that sorts the placement order: larger comes first.
using Weight = std::function<double(const Interval&)>;

std::vector<Order> first_orders(const std::vector<Interval>& intervals) {
  const auto span = [](const Interval& i) { return static_cast<double>(i.last - i.first + 1); };
  const auto bytes = [](const Interval& i) { return static_cast<double>(i.bytes); };
  const std::vector<Weight> weights{
      bytes,
      [&](const Interval& i) { return bytes(i) * span(i); },
      span,
      [](const Interval& i) { return -static_cast<double>(i.first); },
      [](const Interval& i) { return static_cast<double>(i.last); },
  };
  std::vector<Order> orders;
  for (const Weight& weight : weights) {
    Order order(intervals.size());
    std::iota(order.begin(), order.end(), 0U);
    std::vector<double> keys;
    std::transform(intervals.begin(), intervals.end(), std::back_inserter(keys), weight);
    std::stable_sort(order.begin(), order.end(), [&](std::uint32_t a, std::uint32_t b) {
      return keys[a] != keys[b] ? keys[a] > keys[b] : intervals[a].bytes > intervals[b].bytes;
    });
    orders.push_back(std::move(order));
  }
  return orders;
}

// Local search: improves the best order by small changes; deterministic.
class Search {
 public:
  Search(const std::vector<Interval>& intervals, std::size_t good_enough)
      : intervals_(intervals), good_enough_(good_enough) {}

  bool is_done() const { return best_.height <= good_enough_; }
  // Returns whether small changes have ever been seen to close the distance that is left.
  bool is_near() const { return best_.height - good_enough_ <= good_enough_ / 100; }
  Placement best() { return std::move(best_); }

  // Alternates with the lowest-gap rule: each rule finds placements that the other misses.
  void evaluate(const Order& order) {
    latest_ = place_in(order, intervals_, lowest_);
    lowest_ = !lowest_;
    latest_order_ = order;
    if (latest_.height < best_.height) {
      best_ = latest_;
      best_order_ = order;
      rounds_since_ = 0;
    } else {
      ++rounds_since_;
    }
  }

  // Continues from another placement. Placed in the order of their offsets into the lowest gaps,
  // no interval lies higher than there.
  void evaluate(const Placement& other) {
    Order order(intervals_.size());
    std::iota(order.begin(), order.end(), 0U);
    std::ranges::stable_sort(order, {}, [&](std::uint32_t i) { return other.offsets[i]; });
    lowest_ = true;
    evaluate(order);
  }

  // Places intervals first that stick out; without progress, returns to the best order with a
  // few random swaps.
  void iterate() {
    constexpr int max_rounds_without_gain = 6;
    const bool stagnates = rounds_since_ >= max_rounds_without_gain;
    if (stagnates) {
      rounds_since_ = 0;
    }
    Order order = stagnates ? best_order_ : latest_order_;
    const std::size_t limit = good_enough_;
    const Placement& placement = stagnates ? best_ : latest_;
    std::stable_partition(order.begin(), order.end(), [&](std::uint32_t i) {
      return placement.offsets[i] + intervals_[i].bytes > limit;
    });
    if (stagnates) {
      for (int change = 0; change < 4; ++change) {
        std::swap(order[random_.next() % order.size()], order[random_.next() % order.size()]);
      }
    }
    evaluate(order);
  }

 private:
  const std::vector<Interval>& intervals_;
  std::size_t good_enough_;
  Placement best_{.offsets = {}, .height = std::numeric_limits<std::size_t>::max()};
  Placement latest_;
  Order best_order_, latest_order_;
  int rounds_since_ = 0;  // since the best solution
  bool lowest_ = false;
  LinearCongruence random_;
};

// Tries some orders, then the skyline heuristic, and where little is missing rounds from its
// placement that place intervals first that stick out. max_comparisons: of the skyline.
Placement search(const std::vector<Interval>& intervals, std::size_t good_enough,
                 std::size_t max_comparisons) {
  constexpr std::size_t of_rounds = 4'000'000;  // comparisons, some 5 ms
  constexpr std::size_t max_rounds = 1000;
  constexpr std::size_t max_intervals = 10'000;  // of the skyline, whose rounds take longer
  const std::size_t of_one_round = intervals.size() * intervals.size() / 2 + 1;
  const std::size_t all_rounds = std::clamp<std::size_t>(of_rounds / of_one_round, 1, max_rounds);
  std::size_t rounds = 0;
  Search search(intervals, good_enough);
  for (const Order& order : first_orders(intervals)) {
    if (!search.is_done() && rounds < all_rounds) {
      search.evaluate(order);
      ++rounds;
    }
  }
  if (!search.is_done() && !intervals.empty() && intervals.size() <= max_intervals) {
    search.evaluate(place_by_skyline(intervals, good_enough, max_comparisons));
  }
  for (; !search.is_done() && search.is_near() && rounds < all_rounds; ++rounds) {
    search.iterate();
  }
  return search.best();
}

// Divides intervals into the core, which decides the height, and the others, which fill the gaps
// that it leaves.
class Parts {
 public:
  explicit Parts(const std::vector<Interval>& intervals)
      : intervals_(intervals), is_core_(intervals.size()) {
    const std::vector<std::size_t> live = load(intervals);
    const auto bound = static_cast<double>(*std::ranges::max_element(live));
    for (const auto& [bytes_share, live_share] : {large, medium}) {
      const std::vector<std::uint32_t> steps = full_steps(live, live_share * bound);
      for (std::size_t i = 0; i < intervals.size(); ++i) {
        const Interval& interval = intervals[i];
        is_core_[i] = is_core_[i] || (static_cast<double>(interval.bytes) >= bytes_share * bound &&
                                      steps[interval.last + 1] > steps[interval.first]);
      }
    }
  }

  Order core() const { return those(true); }
  // Returns the others, those first that take the most bytes for the most steps.
  Order others() const {
    Order order = those(false);
    std::ranges::stable_sort(order, std::ranges::greater(), [&](std::uint32_t i) {
      return static_cast<double>(intervals_[i].bytes) *
             static_cast<double>(intervals_[i].last - intervals_[i].first + 1);
    });
    return order;
  }

  // Leaves only the smallest intervals to the others, with at most these bytes in total.
  void leave_out(std::size_t max_bytes) {
    Order order(intervals_.size());
    std::iota(order.begin(), order.end(), 0U);
    std::ranges::stable_sort(order, {}, [&](std::uint32_t i) { return intervals_[i].bytes; });
    std::size_t bytes = 0;
    for (const std::uint32_t i : order) {
      bytes += intervals_[i].bytes;
      is_core_[i] = bytes > max_bytes;
    }
  }

 private:
  // The core consists of intervals with at least these bytes that are live in a step with more than
  // these live bytes, both as shares of the most that are live in one step.
  struct Shares {
    double bytes = 0, live = 0;
  };
  static constexpr Shares large{.bytes = 1.0 / 300, .live = 0.7};
  static constexpr Shares medium{.bytes = 1.0 / 1000, .live = 0.9};

  // Returns for each step how many of the earlier ones have more live bytes than `bytes`.
  static std::vector<std::uint32_t> full_steps(const std::vector<std::size_t>& live, double bytes) {
    std::vector<std::uint32_t> count{0};
    for (const std::size_t of_step : live) {
      count.push_back(count.back() + (static_cast<double>(of_step) > bytes ? 1 : 0));
    }
    return count;
  }

  Order those(bool core) const {
    Order order;
    for (std::uint32_t i = 0; i < is_core_.size(); ++i) {
      if (is_core_[i] == core) {
        order.push_back(i);
      }
    }
    return order;
  }

  const std::vector<Interval>& intervals_;
  std::vector<bool> is_core_;
};

struct PlacedParts {
  Placement all;
  std::size_t core_height = 0;
};

// Places the core, whose search ends at the goal, then the others into the gaps.
PlacedParts place_parts(const std::vector<Interval>& intervals, const Parts& parts,
                        std::size_t goal, std::size_t max_comparisons) {
  const Order core = parts.core();
  std::vector<Interval> large;
  large.reserve(core.size());
  std::ranges::transform(core, std::back_inserter(large),
                         [&](std::uint32_t i) { return intervals[i]; });
  const Placement found = search(large, std::max(goal, lower_bound(large)), max_comparisons);
  Placement result{.offsets = std::vector<std::size_t>(intervals.size()), .height = found.height};
  PlacedIntervals<std::int32_t> placed(intervals.size());
  for (std::size_t i = 0; i < core.size(); ++i) {
    placed.insert(large[i], found.offsets[i]);
    result.offsets[core[i]] = found.offsets[i];
  }
  for (const std::uint32_t i : parts.others()) {
    result.offsets[i] = placed.find_offset(intervals[i], false);
    placed.insert(intervals[i], result.offsets[i]);
    result.height = std::max(result.height, result.offsets[i] + intervals[i].bytes);
  }
  return {.all = std::move(result), .core_height = found.height};
}

}  // namespace

std::size_t lower_bound(const std::vector<Interval>& intervals) {
  if (intervals.empty()) {
    return 0;
  }
  const auto bytes = load(intervals);
  return *std::max_element(bytes.begin(), bytes.end());
}

Placement place(const std::vector<Interval>& intervals, std::size_t enough) {
  if (intervals.empty()) {
    return {};
  }
  const std::size_t bound = lower_bound(intervals);
  const std::size_t slack = bound / 1000;  // the search ends this close to the bound
  const bool is_tight = enough >= bound && enough - bound < slack;
  const std::size_t limit = is_tight ? enough : std::max(enough, bound + slack);
  // The others come last and may exceed the goal. Where the limit is as low as the bound, they fit
  // only if the core lies as low as it can.
  const std::size_t goal = is_tight ? 0 : limit - slack;
  // Comparisons: some 10 ms, or far less where nothing fits into the limit.
  const std::size_t max_comparisons = enough > 0 && enough < bound ? 3'000'000 : 20'000'000;
  Parts parts(intervals);
  PlacedParts placed = place_parts(intervals, parts, goal, max_comparisons);
  if (placed.all.height > limit && placed.core_height <= limit) {
    parts.leave_out(slack);
    PlacedParts other = place_parts(intervals, parts, goal, max_comparisons);
    return other.all.height < placed.all.height ? std::move(other.all) : std::move(placed.all);
  }
  return std::move(placed.all);
}

}  // namespace cnn
