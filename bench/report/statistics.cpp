#include "bench/report/statistics.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <utility>

#include "runtime/error.h"
#include "runtime/median.h"

namespace cnn::bench {

double average_seconds(std::span<const double> seconds, double ewma_weight) {
  check(!seconds.empty(), "no step was timed, so there is no average");
  double sum = 0;
  double weights = 0;
  for (const double time : seconds) {  // Horner's scheme: older terms decay
    const double shrink = ewma_weight > 0 ? 1 - ewma_weight : 1;
    sum = sum * shrink + time;
    weights = weights * shrink + 1;
  }
  return sum / weights;
}

double percentile(std::vector<double> values, double share) {
  check(!values.empty(), "no values, so there is no percentile");
  std::ranges::sort(values);
  const double place = share * static_cast<double>(values.size() - 1);
  const auto below = static_cast<std::size_t>(place);
  const std::size_t above = std::min(below + 1, values.size() - 1);
  return std::lerp(values[below], values[above], place - static_cast<double>(below));
}

Speed speed(std::span<const double> seconds, double batch, double ewma_weight) {
  Speed result{.mean = batch / average_seconds(seconds, ewma_weight)};
  std::vector<double> speeds;
  double sum = 0;
  for (const double time : seconds) {
    speeds.push_back(batch / time);
    sum += speeds.back();
  }
  const auto count = static_cast<double>(speeds.size());
  const double average = sum / count;
  double squares = 0;
  for (const double each : speeds) {
    squares += (each - average) * (each - average);
  }
  result.uncertainty = std::sqrt(squares / count) / std::sqrt(count);
  const double centre = median(speeds);
  for (double& each : speeds) {
    each = std::abs(each - centre);
  }
  result.jitter = normal_consistency * median(std::move(speeds));
  return result;
}

double total_speed(std::int64_t steps, double batch, double elapsed_seconds, std::int64_t workers) {
  if (steps <= 0 || elapsed_seconds <= 0) {
    return 0;
  }
  return static_cast<double>(workers * steps) * batch / elapsed_seconds;
}

}  // namespace cnn::bench
