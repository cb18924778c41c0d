#include "runtime/skyline.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <limits>
#include <numeric>
#include <type_traits>
#include <utility>

#include "runtime/linear_congruence.h"

namespace cnn {
namespace {

// Steps above which all bytes are free, from an offset on.
struct Segment {
  std::uint32_t first = 0, last = 0;
  std::size_t offset = 0;
};

// Number: a signed type, as SSE2 has no other comparisons, that holds all steps.
template <class Number>
class Skyline {
 public:
  explicit Skyline(const std::vector<Interval>& intervals) : intervals_(intervals) {}

  std::size_t comparisons() const { return comparisons_; }  // in all rounds

  Placement place(const std::vector<double>& weights) {
    start(weights);
    Placement result{.offsets = std::vector<std::size_t>(intervals_.size())};
    while (!left_.empty()) {
      const std::size_t s = lowest();
      comparisons_ += of_one_placement;
      const std::size_t position = first_that_fits(segments_[s]);
      if (position == left_.size()) {
        raise(s);
        continue;
      }
      const std::uint32_t index = left_[position];
      result.offsets[index] = segments_[s].offset;
      result.height = std::max(result.height, segments_[s].offset + intervals_[index].bytes);
      remove(position);
      put(s, intervals_[index]);
    }
    return result;
  }

 private:
  // Finding the lowest segment and changing the segments takes as long as so many comparisons.
  static constexpr std::size_t of_one_placement = 40;

  void start(const std::vector<double>& weights) {
    left_.resize(intervals_.size());
    std::iota(left_.begin(), left_.end(), 0U);
    std::ranges::stable_sort(left_, std::ranges::greater(),
                             [&](std::uint32_t i) { return weights[i]; });
    firsts_.clear();
    lasts_.clear();
    for (const std::uint32_t i : left_) {
      firsts_.push_back(static_cast<Number>(intervals_[i].first));
      lasts_.push_back(static_cast<Number>(intervals_[i].last));
    }
    const auto last = static_cast<std::uint32_t>(*std::ranges::max_element(lasts_));
    segments_ = {{.first = 0, .last = last, .offset = 0}};
  }

  std::size_t lowest() const {
    return static_cast<std::size_t>(std::ranges::min_element(segments_, {}, &Segment::offset) -
                                    segments_.begin());
  }

  // Returns a position among the intervals that are left; their number if none fits. Compares many
  // without a branch, so that the compiler uses vectors, then fewer, then finds the one among them.
  std::size_t first_that_fits(const Segment& segment) {
    const auto first = static_cast<Number>(segment.first);
    const auto last = static_cast<Number>(segment.last);
    const auto fits = [&](std::size_t i) {
      return static_cast<Number>(static_cast<Number>(firsts_[i] >= first) &
                                 static_cast<Number>(lasts_[i] <= last));
    };
    const std::size_t count = left_.size();
    std::size_t position = 0;
    const auto skip = [&]<std::size_t together>(std::integral_constant<std::size_t, together>) {
      const auto one_fits = [&] {
        Number found = 0;
        for (std::size_t i = position; i < position + together; ++i) {
          found = static_cast<Number>(found | fits(i));
        }
        return found != 0;
      };
      while (position + together <= count && !one_fits()) {
        position += together;
      }
    };
    skip(std::integral_constant<std::size_t, 64>{});
    skip(std::integral_constant<std::size_t, 8>{});
    while (position < count && fits(position) == 0) {
      ++position;
    }
    comparisons_ += position + 1;
    return position;
  }

  // Keeps the order of the others: moving some kilobytes is cheaper than skipping what is placed.
  void remove(std::size_t position) {
    const auto at = static_cast<std::ptrdiff_t>(position);
    left_.erase(left_.begin() + at);
    firsts_.erase(firsts_.begin() + at);
    lasts_.erase(lasts_.begin() + at);
  }

  // Fills the steps of a segment that nothing fits into, up to its lower neighbour.
  void raise(std::size_t s) {
    std::size_t to = std::numeric_limits<std::size_t>::max();
    if (s > 0) {
      to = segments_[s - 1].offset;
    }
    if (s + 1 < segments_.size()) {
      to = std::min(to, segments_[s + 1].offset);
    }
    segments_[s].offset = to;
    join(s > 0 ? s - 1 : 0, std::min(s + 1, segments_.size() - 1));
  }

  void put(std::size_t s, const Interval& interval) {
    const Segment old = segments_[s];
    std::array<Segment, 3> parts;
    std::size_t count = 0;
    if (old.first < interval.first) {
      parts[count++] = {old.first, interval.first - 1, old.offset};
    }
    parts[count++] = {interval.first, interval.last, old.offset + interval.bytes};
    if (interval.last < old.last) {
      parts[count++] = {interval.last + 1, old.last, old.offset};
    }
    const auto at = segments_.begin() + static_cast<std::ptrdiff_t>(s);
    *at = parts[0];
    segments_.insert(at + 1, parts.begin() + 1, parts.begin() + static_cast<std::ptrdiff_t>(count));
    join(s > 0 ? s - 1 : 0, std::min(s + count, segments_.size() - 1));
  }

  // Joins neighbours of equal offset among the segments from `begin` to `end`.
  void join(std::size_t begin, std::size_t end) {
    for (std::size_t s = end; s > begin; --s) {
      if (segments_[s].offset == segments_[s - 1].offset) {
        segments_[s - 1].last = segments_[s].last;
        segments_.erase(segments_.begin() + static_cast<std::ptrdiff_t>(s));
      }
    }
  }

  const std::vector<Interval>& intervals_;
  // The intervals that are not placed yet, by weight: index, first and last step. Separate arrays,
  // since nearly all time goes into scanning them.
  std::vector<std::uint32_t> left_;
  std::vector<Number> firsts_, lasts_;
  std::vector<Segment> segments_;  // of all steps, ascending
  std::size_t comparisons_ = 0;
};

class Weights {
 public:
  explicit Weights(const std::vector<Interval>& intervals) : intervals_(intervals) {}

  const std::vector<double>& values() const { return values_; }

  // Begins anew with the next kind of weights; after the first time, changes each by a random
  // factor.
  void restart() {
    values_.clear();
    for (const Interval& interval : intervals_) {
      const auto steps = static_cast<double>(interval.last - interval.first + 1);
      const auto bytes = static_cast<double>(interval.bytes);
      const std::array<double, 3> kinds{bytes * steps, bytes, steps};
      const double weight = kinds[starts_ % kinds.size()];
      values_.push_back(starts_ == 0 ? weight : weight * factor());
    }
    ++starts_;
  }

  // Raises the weights of the intervals that stick out above the goal.
  void raise(const Placement& placement, std::size_t goal) {
    constexpr double more = 1.5;
    for (std::size_t i = 0; i < values_.size(); ++i) {
      if (placement.offsets[i] + intervals_[i].bytes > goal) {
        values_[i] *= more;
      }
    }
  }

 private:
  double factor() {
    constexpr double least = 0.7, span = 0.6;
    constexpr std::size_t parts = 1024;
    return least + span * static_cast<double>(random_.next() % parts) / parts;
  }

  const std::vector<Interval>& intervals_;
  std::vector<double> values_;
  std::size_t starts_ = 0;
  LinearCongruence random_;
};

template <class Number>
Placement place_with(const std::vector<Interval>& intervals, std::size_t goal,
                     std::size_t max_comparisons) {
  constexpr int rounds_of_one_start = 60;
  Placement best;
  Skyline<Number> skyline(intervals);
  Weights weights(intervals);
  best.height = std::numeric_limits<std::size_t>::max();
  for (int round = 0; best.height > goal && skyline.comparisons() <= max_comparisons; ++round) {
    if (round % rounds_of_one_start == 0) {
      weights.restart();
    }
    Placement found = skyline.place(weights.values());
    weights.raise(found, goal);
    if (found.height < best.height) {
      best = std::move(found);
    }
  }
  return best;
}

}  // namespace

Placement place_by_skyline(const std::vector<Interval>& intervals, std::size_t goal,
                           std::size_t max_comparisons) {
  if (intervals.empty()) {
    return {};
  }
  const std::uint32_t last = std::ranges::max(intervals, {}, &Interval::last).last;
  return std::cmp_less_equal(last, std::numeric_limits<std::int16_t>::max())
             ? place_with<std::int16_t>(intervals, goal, max_comparisons)
             : place_with<std::int32_t>(intervals, goal, max_comparisons);
}

}  // namespace cnn
