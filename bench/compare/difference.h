#pragma once

#include <cstddef>
#include <span>
#include <vector>

namespace cnn::compare {

// How much slower the new side is, with its uncertainty, all in natural logarithms of the step
// time: 0.03 is 3.05 % slower. The unit is the run, of which one number comes in here: steps of one
// run share its placement in memory, its clock and its neighbours, so they are no independent
// samples (Georges, Buytaert, Eeckhout: Statistically Rigorous Java Performance Evaluation, 2007;
// Kalibera, Jones: Rigorous Benchmarking in Reasonable Time, 2013). Logarithms, since what disturbs
// runs multiplies their times.
struct Difference {
  double estimate = 0;
  double error = 0;    // its standard error; infinite where there are too few runs to tell
  double degrees = 1;  // of freedom, for Student's t
  bool paired = false;
  // Deviation of a run around its side's mean, or of a pair's difference around theirs.
  double base_deviation = 0, new_deviation = 0;

  // Returns the p value of the hypothesis that the new side is not slower (one-sided); not faster.
  double p_slower() const;
  double p_faster() const;
  // The bound that the true difference exceeds, or stays below, with this confidence each.
  double lower(double confidence) const;
  double upper(double confidence) const;
};

// Two sides that know nothing of each other: Welch's test (Biometrika 34, 1947), which lets one
// side be noisier than the other.
Difference independent_difference(std::span<const double> base, std::span<const double> fresh);

// Compares pairs of runs that took turns, so that what disturbs a machine for longer than a turn
// disturbs both alike: Student's test of what the pairs differ by. Throws Error if there are none.
Difference paired_difference(std::span<const double> differences);

// The standard error, and its degrees of freedom, that these numbers of runs would give if they
// scatter as these do. There are base_runs of pairs, and fresh_runs is not looked at.
Difference with_runs(const Difference& difference, std::size_t base_runs, std::size_t fresh_runs);

// Holm's step-down correction (Scandinavian Journal of Statistics 6, 1979): p values, in the order
// given, of which each may be compared with one level, however many there are.
std::vector<double> holm(std::span<const double> p_values);

}  // namespace cnn::compare
