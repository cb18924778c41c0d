#include "bench/compare/difference.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "bench/compare/distributions.h"
#include "runtime/error.h"

namespace cnn::compare {
namespace {

constexpr double unknown = std::numeric_limits<double>::infinity();

double mean_of(std::span<const double> values) {
  return std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
}

// Returns the population variance estimated from the values; 0 for a single one.
double variance_of(std::span<const double> values) {
  const double mean = mean_of(values);
  double squares = 0;
  for (const double value : values) {
    squares += (value - mean) * (value - mean);
  }
  return values.size() < 2 ? 0 : squares / static_cast<double>(values.size() - 1);
}

// Welch's and Satterthwaite's approximation, from the variances of the two means.
double welch_degrees(double base, double base_runs, double candidate, double fresh_runs) {
  const double sum = base + candidate;
  return sum == 0 ? base_runs + fresh_runs - 2
                  : sum * sum /
                        (base * base / (base_runs - 1) + candidate * candidate / (fresh_runs - 1));
}

}  // namespace

double Difference::p_slower() const {
  if (error == 0) {
    return estimate > 0 ? 0 : 1;
  }
  return std::isinf(error) ? 0.5 : student_cdf(-estimate / error, degrees);
}

double Difference::p_faster() const {
  if (error == 0) {
    return estimate < 0 ? 0 : 1;
  }
  return std::isinf(error) ? 0.5 : student_cdf(estimate / error, degrees);
}

double Difference::lower(double confidence) const {
  return std::isinf(error) ? -unknown : estimate - student_quantile(confidence, degrees) * error;
}

double Difference::upper(double confidence) const {
  return std::isinf(error) ? unknown : estimate + student_quantile(confidence, degrees) * error;
}

Difference independent_difference(std::span<const double> base, std::span<const double> candidate) {
  check(!base.empty() && !candidate.empty(), "a side without runs has no difference to the other");
  Difference result{.estimate = mean_of(candidate) - mean_of(base),
                    .error = unknown,
                    .base_deviation = std::sqrt(variance_of(base)),
                    .new_deviation = std::sqrt(variance_of(candidate))};
  if (base.size() < 2 || candidate.size() < 2) {
    return result;
  }
  const auto base_runs = static_cast<double>(base.size());
  const auto fresh_runs = static_cast<double>(candidate.size());
  const double base_variance = variance_of(base) / base_runs;
  const double fresh_variance = variance_of(candidate) / fresh_runs;
  result.error = std::sqrt(base_variance + fresh_variance);
  result.degrees = welch_degrees(base_variance, base_runs, fresh_variance, fresh_runs);
  return result;
}

Difference paired_difference(std::span<const double> differences) {
  check(!differences.empty(), "without pairs there is no difference");
  const double deviation = std::sqrt(variance_of(differences));
  Difference result{.estimate = mean_of(differences),
                    .error = unknown,
                    .paired = true,
                    .base_deviation = deviation,
                    .new_deviation = deviation};
  if (differences.size() >= 2) {
    result.error = deviation / std::sqrt(static_cast<double>(differences.size()));
    result.degrees = static_cast<double>(differences.size() - 1);
  }
  return result;
}

Difference with_runs(const Difference& difference, std::size_t base_runs, std::size_t fresh_runs) {
  Difference result = difference;
  const auto base_count = static_cast<double>(base_runs);
  const auto fresh_count = static_cast<double>(fresh_runs);
  if (result.paired) {
    result.error = difference.base_deviation / std::sqrt(base_count);
    result.degrees = base_count - 1;
    return result;
  }
  const double base = difference.base_deviation * difference.base_deviation / base_count;
  const double candidate = difference.new_deviation * difference.new_deviation / fresh_count;
  result.error = std::sqrt(base + candidate);
  result.degrees = welch_degrees(base, base_count, candidate, fresh_count);
  return result;
}

std::vector<double> holm(std::span<const double> p_values) {
  std::vector<std::size_t> order(p_values.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::ranges::sort(order, {}, [&](std::size_t i) { return p_values[i]; });
  std::vector<double> adjusted(p_values.size());
  double least = 0;
  for (std::size_t rank = 0; rank < order.size(); ++rank) {
    const auto left = static_cast<double>(order.size() - rank);
    least = std::max(least, std::min(1.0, left * p_values[order[rank]]));
    adjusted[order[rank]] = least;
  }
  return adjusted;
}

}  // namespace cnn::compare
