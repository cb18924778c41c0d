#pragma once

#include <cstdint>
#include <limits>
#include <span>
#include <vector>

namespace cnn::bench {

// Counts values in buckets whose limits grow by a tenth each, on both sides of zero, as in
// TensorFlow's histogram summaries for TensorBoard. Non-finite values are counted separately.
class Histogram {
 public:
  Histogram();

  void add(double value);
  // Removes added zeros, such as the padding of a packed tensor, from the buckets and the range.
  void remove_zeros(std::int64_t count);
  void merge(const Histogram& other);

  std::int64_t count() const { return count_; }
  std::int64_t not_finite() const { return not_finite_; }
  double min() const;  // 0 if empty
  double max() const;
  double sum() const { return sum_; }
  double sum_of_squares() const { return sum_of_squares_; }

  // Upper limits of consecutive buckets and the count of each; runs of empty buckets are merged.
  struct Buckets {
    std::vector<double> limits, counts;
  };
  Buckets buckets() const;

 private:
  std::span<const double> limits_;
  std::vector<double> counts_;
  std::int64_t count_ = 0, zeros_ = 0, not_finite_ = 0;
  // The range of the non-zero values.
  double min_ = std::numeric_limits<double>::infinity();
  double max_ = -std::numeric_limits<double>::infinity();
  double sum_ = 0, sum_of_squares_ = 0;
};

}  // namespace cnn::bench
