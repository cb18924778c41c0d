#include "bench/report/histogram.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>

namespace cnn::bench {
namespace {

constexpr double first_limit = 1e-12, last_limit = 1e20, growth = 1.1;

std::vector<double> make_limits() {
  std::vector<double> positive;
  for (double limit = first_limit; limit < last_limit; limit *= growth) {
    positive.push_back(limit);
  }
  positive.push_back(std::numeric_limits<double>::max());
  std::vector<double> limits;
  for (auto limit = positive.rbegin(); limit != positive.rend(); ++limit) {
    limits.push_back(-*limit);
  }
  limits.push_back(0);
  limits.insert(limits.end(), positive.begin(), positive.end());
  return limits;
}

std::span<const double> all_limits() {
  static const std::vector<double> limits = make_limits();
  return limits;
}

// A bucket holds values below its limit and at or above the previous limit.
std::size_t search_bucket(std::span<const double> limits, double value) {
  const auto limit = std::ranges::upper_bound(limits, value);
  return limit == limits.end() ? limits.size() - 1
                               : static_cast<std::size_t>(limit - limits.begin());
}

// Sign, exponent and four bits of the mantissa: values that share them differ by less than 7 %.
constexpr unsigned shared_bits = 16;
std::size_t cell_of(double value) {
  return std::bit_cast<std::uint64_t>(value) >> (64 - shared_bits);
}

// Returns for each cell the bucket of its lowest value. A network has millions of values, and a
// binary search for each would take most of a step.
std::vector<std::uint16_t> make_first_buckets() {
  std::vector<std::uint16_t> first(std::size_t{1} << shared_bits);
  constexpr std::uint64_t others = (std::uint64_t{1} << (64 - shared_bits)) - 1;
  for (std::uint64_t cell = 0; cell < first.size(); ++cell) {
    const std::uint64_t bits = cell << (64 - shared_bits);
    const bool negative = bits >> 63U != 0;  // of these, the largest magnitude is the lowest
    const auto lowest = std::bit_cast<double>(negative ? bits | others : bits);
    first[cell] =
        static_cast<std::uint16_t>(std::isnan(lowest) ? 0 : search_bucket(all_limits(), lowest));
  }
  return first;
}

std::size_t bucket_of(std::span<const double> limits, double value) {
  static const std::vector<std::uint16_t> first_buckets = make_first_buckets();
  std::size_t bucket = first_buckets[cell_of(value)];
  while (bucket + 1 < limits.size() && limits[bucket] <= value) {
    ++bucket;
  }
  return bucket;
}

}  // namespace

Histogram::Histogram() : limits_(all_limits()), counts_(limits_.size()) {}

void Histogram::add(double value) {
  if (!std::isfinite(value)) {
    ++not_finite_;
    return;
  }
  if (value == 0) {
    ++zeros_;
  } else {
    min_ = std::min(min_, value);
    max_ = std::max(max_, value);
  }
  ++count_;
  sum_ += value;
  sum_of_squares_ += value * value;
  ++counts_[bucket_of(limits_, value)];
}

void Histogram::remove_zeros(std::int64_t count) {
  count_ -= count;
  zeros_ -= count;
  counts_[bucket_of(limits_, 0)] -= static_cast<double>(count);
}

void Histogram::merge(const Histogram& other) {
  min_ = std::min(min_, other.min_);
  max_ = std::max(max_, other.max_);
  count_ += other.count_;
  zeros_ += other.zeros_;
  not_finite_ += other.not_finite_;
  sum_ += other.sum_;
  sum_of_squares_ += other.sum_of_squares_;
  for (std::size_t i = 0; i < counts_.size(); ++i) {
    counts_[i] += other.counts_[i];
  }
}

double Histogram::min() const {
  if (count_ == 0) {
    return 0;
  }
  return zeros_ > 0 ? std::min(min_, 0.0) : min_;
}

double Histogram::max() const {
  if (count_ == 0) {
    return 0;
  }
  return zeros_ > 0 ? std::max(max_, 0.0) : max_;
}

Histogram::Buckets Histogram::buckets() const {
  Buckets all;
  for (std::size_t i = 0; i < counts_.size(); ++i) {
    if (counts_[i] == 0 && !all.counts.empty() && all.counts.back() == 0) {
      all.limits.back() = limits_[i];
      continue;
    }
    all.limits.push_back(limits_[i]);
    all.counts.push_back(counts_[i]);
  }
  return all;
}

}  // namespace cnn::bench
