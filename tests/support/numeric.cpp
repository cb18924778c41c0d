#include "tests/support/numeric.h"

#include <algorithm>
#include <cmath>

#include "tests/support/non_finite.h"

namespace cnn::tests {

namespace {

double root_mean_square(std::span<const float> values) {
  double sum = 0;
  for (const float value : values) {
    sum += std::isfinite(value) ? static_cast<double>(value) * value : 0;
  }
  return std::sqrt(sum / static_cast<double>(std::max<std::size_t>(values.size(), 1)));
}

// accepts(expected, actual) returns whether this difference is allowed.
template <class T, class Accepts>
std::optional<std::string> first_refused(std::span<const T> expected, std::span<const T> actual,
                                         Accepts accepts) {
  std::size_t refused = 0;
  std::size_t first = 0;
  for (std::size_t i = 0; i < expected.size(); ++i) {
    if (!accepts(expected[i], actual[i])) {
      first = refused == 0 ? i : first;
      ++refused;
    }
  }
  if (refused == 0) {
    return std::nullopt;
  }
  return std::to_string(refused) + " of " + std::to_string(expected.size()) +
         " elements differ, first element " + std::to_string(first) + ": expected " +
         std::to_string(expected[first]) + ", got " + std::to_string(actual[first]);
}

}  // namespace

std::optional<std::string> difference(const TensorView& expected, const TensorView& actual,
                                      double tolerance) {
  return difference(expected, actual, tolerance, NonFinite::exact);
}

std::optional<std::string> difference(const TensorView& expected, const TensorView& actual,
                                      double tolerance, NonFinite allowed) {
  if (expected.desc != actual.desc) {
    return "expected " + to_string(expected.desc) + ", got " + to_string(actual.desc);
  }
  const auto equal = [](auto a, auto b) { return a == b; };
  if (expected.desc.type == DataType::i32) {
    return first_refused<std::int32_t>(expected.as<std::int32_t>(), actual.as<std::int32_t>(),
                                       equal);
  }
  if (expected.desc.type == DataType::u8) {
    return first_refused<std::uint8_t>(expected.as<std::uint8_t>(), actual.as<std::uint8_t>(),
                                       equal);
  }
  const double scale = root_mean_square(expected.as<float>());
  return first_refused<float>(expected.as<float>(), actual.as<float>(), [&](float a, float b) {
    if (!std::isfinite(a) || !std::isfinite(b)) {
      const bool other = allowed == NonFinite::inexact && !std::isfinite(b);
      return a == b || (std::isnan(a) && std::isnan(b)) || other;
    }
    return std::abs(a - b) <= tolerance * std::max(std::abs(static_cast<double>(a)), scale);
  });
}

}  // namespace cnn::tests
