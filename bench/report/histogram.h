#pragma once

#include <cstdint>
#include <limits>
#include <span>
#include <vector>

namespace cnn::bench {

// Counts of values in buckets whose limits grow by a tenth each, on both sides of zero: those of
// TensorFlow's histogram summaries, which TensorBoard draws. Values that are not finite are
// counted apart.
class Histogram {
 public:
  Histogram();

  void add(double value);
  // Takes back values of zero that were added, such as the padding of a packed tensor: they count
  // neither in buckets nor in the range.
  void remove_zeros(std::int64_t count);
  void merge(const Histogram& other);

  std::int64_t count() const { return count_; }
  std::int64_t not_finite() const { return not_finite_; }
  double min() const;  // of an empty histogram: 0
  double max() const;
  double sum() const { return sum_; }
  double sum_of_squares() const { return sum_of_squares_; }

  // Upper limits of consecutive buckets and the number of values in each; runs of empty buckets
  // are joined.
  struct Buckets {
    std::vector<double> limits, counts;
  };
  Buckets buckets() const;

 private:
  std::span<const double> limits_;
  std::vector<double> counts_;
  std::int64_t count_ = 0, zeros_ = 0, not_finite_ = 0;
  // The range of the values that are not zero.
  double min_ = std::numeric_limits<double>::infinity();
  double max_ = -std::numeric_limits<double>::infinity();
  double sum_ = 0, sum_of_squares_ = 0;
};

}  // namespace cnn::bench
