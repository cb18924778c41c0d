#pragma once

#include <cstddef>
#include <span>
#include <vector>

namespace cnn::compare {

// The slowdown of the new side with its uncertainty, in natural logarithms of the step time: 0.03
// is 3.05 % slower. The sample is the run, with one number each: steps of one run share memory
// placement, clock and neighbours, so they are not independent (Georges, Buytaert, Eeckhout:
// Statistically Rigorous Java Performance Evaluation, 2007; Kalibera, Jones: Rigorous Benchmarking
// in Reasonable Time, 2013). Logarithms, because disturbances multiply the times of runs.
struct Difference {
  double estimate = 0;
  double error = 0;    // standard error; infinite with too few runs
  double degrees = 1;  // of freedom, for Student's t
  bool paired = false;
  // Standard deviation of runs around their side's mean, or of pair differences around their mean.
  double base_deviation = 0, new_deviation = 0;

  // Return the p value of the one-sided hypothesis that the new side is not slower, or not faster.
  double p_slower() const;
  double p_faster() const;
  // Return the bounds that the true difference exceeds, or stays below, each with this confidence.
  double lower(double confidence) const;
  double upper(double confidence) const;
};

// Compares independent sides by Welch's test (Biometrika 34, 1947), which allows unequal variances.
Difference independent_difference(std::span<const double> base, std::span<const double> candidate);

// Compares pairs of runs that took turns, so that a disturbance longer than a turn affects both
// equally: Student's test of the pair differences. Throws Error without pairs.
Difference paired_difference(std::span<const double> differences);

// Returns the expected standard error and degrees of freedom for these numbers of runs with the
// same scatter. For pairs, base_runs is their number and fresh_runs is ignored.
Difference with_runs(const Difference& difference, std::size_t base_runs, std::size_t fresh_runs);

// Applies Holm's step-down correction (Scandinavian Journal of Statistics 6, 1979): returns
// adjusted p values in the given order, each comparable with one significance level.
std::vector<double> holm(std::span<const double> p_values);

}  // namespace cnn::compare
