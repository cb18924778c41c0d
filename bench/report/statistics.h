#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace cnn::bench {

// Formulas for the printed numbers, over the step times t_1..t_n (seconds, timed steps only).

// Returns the mean of the times; with weight a > 0 of the newest step, the mean weighted by
// (1-a)^(n-1), ..., (1-a), 1. Throws Error without times.
double average_seconds(std::span<const double> seconds, double ewma_weight = 0);

// Returns the quantile of the values at `share`, interpolated between neighbours: 0.5 gives the
// median. Throws Error without values.
double percentile(std::vector<double> values, double share);

// The factor that makes the median distance estimate the standard deviation of normal data.
inline constexpr double normal_consistency = 1.4826;

struct Speed {
  double mean = 0;         // batch / average time, not the average of speeds
  double uncertainty = 0;  // population standard deviation of batch / t_i, over sqrt(n)
  double jitter = 0;       // 1.4826 * median of the distances from the median of batch / t_i
};

// Returns images/sec of steps with `batch` examples each. Throws Error without times.
Speed speed(std::span<const double> seconds, double batch, double ewma_weight = 0);

// Returns workers * steps * batch / elapsed; 0 if no step was timed.
double total_speed(std::int64_t steps, double batch, double elapsed_seconds,
                   std::int64_t workers = 1);

}  // namespace cnn::bench
