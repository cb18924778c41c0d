#pragma once

#include <cstddef>
#include <vector>

#include "bench/report/statistics.h"

namespace cnn::bench {

// The formulas of statistics.h over a growing list of step times. A run of n steps would spend time
// in proportion to n^2 if each printed line went through the whole list.

// average_seconds() of the times so far.
class RunningAverage {
 public:
  explicit RunningAverage(double ewma_weight = 0)
      : shrink_(ewma_weight > 0 ? 1 - ewma_weight : 1) {}

  void add(double seconds);
  double seconds() const;  // throws Error without times

 private:
  double shrink_ = 1;  // of the weight of each older time
  double sum_ = 0, weights_ = 0;
};

// Values in ascending order. They lie in blocks of limited size: an insertion moves one of them.
class SortedValues {
 public:
  void insert(double value);
  std::size_t size() const { return size_; }
  double operator[](std::size_t rank) const;  // rank 0 is the smallest value

 private:
  std::vector<std::vector<double>> blocks_;  // none is empty
  std::size_t size_ = 0;
};

// speed() of the times so far.
class RunningSpeed {
 public:
  explicit RunningSpeed(double batch = 0, double ewma_weight = 0)
      : batch_(batch), average_(ewma_weight) {}

  void add(double seconds);
  Speed speed() const;  // throws Error without times

 private:
  double batch_ = 0;
  RunningAverage average_;
  SortedValues speeds_;
  // Welford's algorithm: the mean of the speeds, and the sum of their squared distances from it.
  double mean_ = 0, squares_ = 0;
};

}  // namespace cnn::bench
