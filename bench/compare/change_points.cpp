#include "bench/compare/change_points.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <random>

namespace cnn::compare {
namespace {

struct Split {
  std::size_t index = 0;
  double distance = 0;  // scaled energy distance of the two parts; 0: no split
};

double pairs(std::size_t values) {
  return static_cast<double>(values) * static_cast<double>(values - 1) / 2;
}

double sum_of_distances(double value, std::span<const double> others) {
  double sum = 0;
  for (const double other : others) {
    sum += std::abs(value - other);
  }
  return sum;
}

// Returns the best split of one segment. Moves value by value from the right part to the left one
// and updates the sums of distances within and between the parts.
Split best_split(std::span<const double> values) {
  const std::size_t count = values.size();
  Split best;
  if (count < 2 * min_segment) {
    return best;
  }
  double left = 0, between = 0, right = 0;
  for (std::size_t i = 0; i < count; ++i) {
    right += sum_of_distances(values[i], values.subspan(i + 1));
  }
  for (std::size_t i = 0; i + min_segment < count; ++i) {
    const double to_left = sum_of_distances(values[i], values.first(i));
    const double to_right = sum_of_distances(values[i], values.subspan(i + 1));
    left += to_left;
    right -= to_right;
    between += to_right - to_left;
    const std::size_t m = i + 1, n = count - m;
    if (m >= min_segment) {
      const double product = static_cast<double>(m) * static_cast<double>(n);
      const double distance = product / static_cast<double>(count) *
                              (2 * between / product - left / pairs(m) - right / pairs(n));
      if (distance > best.distance) {
        best = {m, distance};
      }
    }
  }
  return best;
}

// Returns the best split of all segments; `ends` has the end of each in order.
Split best_of_all(std::span<const double> values, std::span<const std::size_t> ends) {
  Split best;
  std::size_t begin = 0;
  for (const std::size_t end : ends) {
    Split split = best_split(values.subspan(begin, end - begin));
    if (split.distance > best.distance) {
      best = {begin + split.index, split.distance};
    }
    begin = end;
  }
  return best;
}

// std::shuffle and its distributions differ between libraries; this function is equal everywhere.
void shuffle(std::span<double> values, std::mt19937_64& random) {
  for (std::size_t i = values.size(); i > 1; --i) {
    std::swap(values[i - 1], values[random() % i]);
  }
}

// Returns how often values shuffled within their segments have an equally good split; stops as soon
// as that exceeds the significance.
double p_of(const Split& found, std::span<const double> values, std::span<const std::size_t> ends,
            const ChangeSearch& search) {
  std::mt19937_64 random(search.seed);
  std::vector<double> shuffled(values.begin(), values.end());
  const auto all = static_cast<double>(search.permutations + 1);
  std::size_t as_good = 1;  // counts the series itself
  for (std::size_t i = 0; i < search.permutations; ++i) {
    std::size_t begin = 0;
    for (const std::size_t end : ends) {
      shuffle(std::span(shuffled).subspan(begin, end - begin), random);
      begin = end;
    }
    as_good += best_of_all(shuffled, ends).distance >= found.distance ? 1 : 0;
    if (static_cast<double>(as_good) / all > search.significance) {
      return 1;
    }
  }
  return static_cast<double>(as_good) / all;
}

}  // namespace

std::size_t min_values(double significance) {
  std::size_t count = 2 * min_segment;
  // Two of all ways to choose one half separate both sides of the step.
  const auto chance = [](std::size_t values) {
    double ways = 1;
    const std::size_t half = values / 2;
    for (std::size_t i = 1; i <= half; ++i) {
      ways *= static_cast<double>(values - half + i) / static_cast<double>(i);
    }
    return 2 / ways;
  };
  while (chance(count) > significance) {
    ++count;
  }
  return count;
}

std::vector<ChangePoint> find_changes(std::span<const double> values, const ChangeSearch& search) {
  std::vector<ChangePoint> changes;
  std::vector<std::size_t> ends{values.size()};
  while (values.size() >= min_values(search.significance)) {
    const Split split = best_of_all(values, ends);
    if (split.distance <= 0) {
      break;
    }
    const double p = p_of(split, values, ends, search);
    if (p > search.significance) {
      break;
    }
    changes.push_back({split.index, p});
    ends.insert(std::ranges::upper_bound(ends, split.index), split.index);
  }
  std::ranges::sort(changes, {}, &ChangePoint::index);
  return changes;
}

}  // namespace cnn::compare
