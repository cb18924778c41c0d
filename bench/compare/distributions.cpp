#include "bench/compare/distributions.h"

#include <cmath>
#include <limits>

#include "runtime/error.h"

namespace cnn::compare {
namespace {

double away_from_zero(double value) {
  constexpr double tiny = 1e-300;
  return std::abs(value) < tiny ? tiny : value;
}

// Returns I_x(a, b) without its leading factor; converges fast for x < (a + 1) / (a + b + 2).
double beta_fraction(double x, double a, double b) {
  constexpr int max_terms = 10000;
  double c = 1;
  double d = 1 / away_from_zero(1 - (a + b) * x / (a + 1));
  double value = d;
  for (int m = 1; m < max_terms; ++m) {
    const double even = m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m));
    d = 1 / away_from_zero(1 + even * d);
    c = away_from_zero(1 + even / c);
    value *= c * d;
    const double odd = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1));
    d = 1 / away_from_zero(1 + odd * d);
    c = away_from_zero(1 + odd / c);
    value *= c * d;
    if (std::abs(c * d - 1) < 4 * std::numeric_limits<double>::epsilon()) {
      break;
    }
  }
  return value;
}

double incomplete_beta(double x, double a, double b) {
  if (x <= 0 || x >= 1) {
    return x <= 0 ? 0 : 1;
  }
  const double factor = std::exp(std::lgamma(a + b) - std::lgamma(a) - std::lgamma(b) +
                                 a * std::log(x) + b * std::log1p(-x));
  return x < (a + 1) / (a + b + 2) ? factor * beta_fraction(x, a, b) / a
                                   : 1 - factor * beta_fraction(1 - x, b, a) / b;
}

}  // namespace

double student_cdf(double t, double degrees) {
  if (std::isinf(t)) {
    return t > 0 ? 1 : 0;
  }
  const double tail = incomplete_beta(degrees / (degrees + t * t), degrees / 2, 0.5) / 2;
  return t > 0 ? 1 - tail : tail;
}

double student_quantile(double probability, double degrees) {
  check(probability > 0 && probability < 1, "a probability lies between 0 and 1");
  if (probability < 0.5) {
    return -student_quantile(1 - probability, degrees);
  }
  double low = 0, high = 1;
  while (student_cdf(high, degrees) < probability) {
    low = high;
    high *= 2;
  }
  // Bisects the interval until its ends are nearly adjacent.
  for (int i = 0; i < 200 && high - low > 1e-14 * high; ++i) {
    const double middle = (low + high) / 2;
    (student_cdf(middle, degrees) < probability ? low : high) = middle;
  }
  return (low + high) / 2;
}

}  // namespace cnn::compare
