#include "runtime/placement.h"

#include <algorithm>
#include <functional>
#include <limits>
#include <numeric>

namespace cnn {
namespace {

using Order = std::vector<std::uint32_t>;  // indices of intervals

struct Placed {
  std::size_t offset = 0, end = 0;
  std::uint32_t first = 0, last = 0;
};

// The smallest gap between the placed intervals that live at the same time, else above them all.
// Nearly all of the time is spent here.
std::size_t best_offset(const std::vector<Placed>& placed, const Interval& interval) {
  constexpr std::size_t none = std::numeric_limits<std::size_t>::max();
  std::size_t best = 0;
  std::size_t best_gap = none;
  std::size_t cursor = 0;
  for (const Placed& other : placed) {  // by offset
    if (other.last < interval.first || interval.last < other.first) {
      continue;
    }
    const std::size_t gap = other.offset > cursor ? other.offset - cursor : 0;
    if (gap >= interval.bytes && gap < best_gap) {
      best = cursor;
      best_gap = gap;
    }
    cursor = std::max(cursor, other.end);
  }
  return best_gap == none ? cursor : best;
}

Placement place_in(const Order& order, const std::vector<Interval>& intervals) {
  Placement result{.offsets = std::vector<std::size_t>(intervals.size())};
  std::vector<Placed> placed;
  placed.reserve(intervals.size());
  for (const std::uint32_t index : order) {
    const Interval& interval = intervals[index];
    const std::size_t offset = best_offset(placed, interval);
    const Placed entry{offset, offset + interval.bytes, interval.first, interval.last};
    const auto at =
        std::upper_bound(placed.begin(), placed.end(), entry,
                         [](const Placed& a, const Placed& b) { return a.offset < b.offset; });
    placed.insert(at, entry);
    result.offsets[index] = offset;
    result.height = std::max(result.height, entry.end);
  }
  return result;
}

// Live bytes of every step.
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

// What decides the place in line: larger comes first.
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

// Improves the best order by repeated small changes; the same every time.
class Search {
 public:
  Search(const std::vector<Interval>& intervals, std::size_t good_enough)
      : intervals_(intervals), good_enough_(good_enough) {}

  bool is_done() const { return best_.height <= good_enough_; }
  Placement best() { return std::move(best_); }

  void attempt(const Order& order) {
    latest_ = place_in(order, intervals_);
    latest_order_ = order;
    if (latest_.height < best_.height) {
      best_ = latest_;
      best_order_ = order;
      rounds_since_ = 0;
    } else {
      ++rounds_since_;
    }
  }

  // What stuck out comes first; when that leads nowhere, back to the best order with a few changed
  // places.
  void improve() {
    constexpr int patience = 6;
    const bool stuck = rounds_since_ >= patience;
    if (stuck) {
      rounds_since_ = 0;
    }
    Order order = stuck ? best_order_ : latest_order_;
    const std::size_t limit = good_enough_;
    const Placement& placement = stuck ? best_ : latest_;
    std::stable_partition(order.begin(), order.end(), [&](std::uint32_t i) {
      return placement.offsets[i] + intervals_[i].bytes > limit;
    });
    if (stuck) {
      for (int change = 0; change < 4; ++change) {
        std::swap(order[random() % order.size()], order[random() % order.size()]);
      }
    }
    attempt(order);
  }

 private:
  // Knuth's linear congruential generator; the low bits are poor.
  std::size_t random() {
    random_ = random_ * 6364136223846793005ULL + 1442695040888963407ULL;
    return static_cast<std::size_t>(random_ >> 33U);
  }

  const std::vector<Interval>& intervals_;
  std::size_t good_enough_;
  Placement best_{.offsets = {}, .height = std::numeric_limits<std::size_t>::max()};
  Placement latest_;
  Order best_order_, latest_order_;
  int rounds_since_ = 0;  // since the best
  std::uint64_t random_ = 1;
};

}  // namespace

std::size_t lower_bound(const std::vector<Interval>& intervals) {
  if (intervals.empty()) {
    return 0;
  }
  const auto bytes = load(intervals);
  return *std::max_element(bytes.begin(), bytes.end());
}

Placement place(const std::vector<Interval>& intervals) {
  if (intervals.empty()) {
    return {};
  }
  constexpr std::size_t comparisons = 12'000'000;  // some 30 ms
  constexpr std::size_t most_rounds = 2000;
  const std::size_t bound = lower_bound(intervals);
  Search search(intervals, bound + bound / 500);
  for (const Order& order : first_orders(intervals)) {
    if (!search.is_done()) {
      search.attempt(order);
    }
  }
  const std::size_t of_one_round = intervals.size() * intervals.size() / 2 + 1;
  const std::size_t rounds = std::min(most_rounds, comparisons / of_one_round);
  for (std::size_t round = 0; round < rounds && !search.is_done(); ++round) {
    search.improve();
  }
  return search.best();
}

}  // namespace cnn
