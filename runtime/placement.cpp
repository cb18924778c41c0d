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
std::size_t best_offset(const std::vector<Placed>& placed, const Interval& interval) {
  std::size_t best = 0;
  std::size_t best_gap = std::numeric_limits<std::size_t>::max();
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
  return best_gap == std::numeric_limits<std::size_t>::max() ? cursor : best;
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

// Puts in front what ends above `limit`.
void advance(Order& order, const Placement& placement, const std::vector<Interval>& intervals,
             std::size_t limit) {
  std::stable_partition(order.begin(), order.end(), [&](std::uint32_t i) {
    return placement.offsets[i] + intervals[i].bytes > limit;
  });
}

}  // namespace

std::size_t lower_bound(const std::vector<Interval>& intervals) {
  if (intervals.empty()) {
    return 0;
  }
  const auto bytes = load(intervals);
  return *std::max_element(bytes.begin(), bytes.end());
}

Placement place(const std::vector<Interval>& intervals) {
  const std::size_t bound = lower_bound(intervals);
  Placement best{.offsets = {}, .height = std::numeric_limits<std::size_t>::max()};
  Order best_order;
  const auto attempt = [&](const Order& order) {
    Placement placement = place_in(order, intervals);
    if (placement.height < best.height) {
      best = placement;
      best_order = order;
    }
    return placement;
  };
  for (const Order& order : first_orders(intervals)) {
    attempt(order);
    if (best.height <= bound) {
      return best;
    }
  }
  Order order = best_order;
  Placement current = best;
  for (int round = 0; round < 40 && best.height > bound; ++round) {
    advance(order, current, intervals, bound);
    current = attempt(order);
  }
  return best;
}

}  // namespace cnn
