#include "bench/report/running_speed.h"

#include <algorithm>
#include <cmath>

#include "runtime/error.h"

namespace cnn::bench {
namespace {

constexpr std::size_t max_block = 1024;

double median_of(const SortedValues& values) {
  const std::size_t middle = values.size() / 2;
  return values.size() % 2 == 1 ? values[middle] : (values[middle - 1] + values[middle]) / 2;
}

// Returns the distance of that rank from the centre. The rank + 1 values that are nearest to the
// centre are neighbours in sorted order: a binary search finds the first of them.
double distance_of_rank(const SortedValues& values, double centre, std::size_t rank) {
  std::size_t first = 0, last = values.size() - 1 - rank;
  while (first < last) {
    const std::size_t middle = first + (last - first) / 2;
    if (centre - values[middle] > values[middle + rank + 1] - centre) {
      first = middle + 1;
    } else {
      last = middle;
    }
  }
  return std::max(centre - values[first], values[first + rank] - centre);
}

// Returns the median of the distances from the median.
double median_distance(const SortedValues& values) {
  const double centre = median_of(values);
  const std::size_t middle = values.size() / 2;
  const double upper = distance_of_rank(values, centre, middle);
  return values.size() % 2 == 1 ? upper
                                : (distance_of_rank(values, centre, middle - 1) + upper) / 2;
}

}  // namespace

void RunningAverage::add(double seconds) {  // Horner's scheme: older terms decay
  sum_ = sum_ * shrink_ + seconds;
  weights_ = weights_ * shrink_ + 1;
}

double RunningAverage::seconds() const {
  check(weights_ > 0, "no step was timed, so there is no average");
  return sum_ / weights_;
}

void SortedValues::insert(double value) {
  ++size_;
  if (blocks_.empty()) {
    blocks_.push_back({value});
    return;
  }
  auto block = std::ranges::lower_bound(blocks_, value, {}, [](const auto& b) { return b.back(); });
  if (block == blocks_.end()) {
    --block;
  }
  block->insert(std::ranges::upper_bound(*block, value), value);
  if (block->size() > max_block) {
    const auto half = block->begin() + static_cast<std::ptrdiff_t>(max_block / 2);
    std::vector<double> upper(half, block->end());
    block->erase(half, block->end());
    blocks_.insert(block + 1, std::move(upper));
  }
}

double SortedValues::operator[](std::size_t rank) const {
  auto block = blocks_.begin();
  for (; rank >= block->size(); ++block) {
    rank -= block->size();
  }
  return (*block)[rank];
}

void RunningSpeed::add(double seconds) {
  average_.add(seconds);
  const double speed = batch_ / seconds;
  speeds_.insert(speed);
  const double from_mean = speed - mean_;
  mean_ += from_mean / static_cast<double>(speeds_.size());
  squares_ += from_mean * (speed - mean_);
}

Speed RunningSpeed::speed() const {
  const double average = average_.seconds();
  const auto count = static_cast<double>(speeds_.size());
  return {.mean = batch_ / average,
          .uncertainty = std::sqrt(squares_ / count) / std::sqrt(count),
          .jitter = normal_consistency * median_distance(speeds_)};
}

}  // namespace cnn::bench
