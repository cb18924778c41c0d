#include "layers/initializer.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <numbers>
#include <thread>
#include <vector>

#include "runtime/divide_up.h"

namespace cnn::layers {

namespace {

// Returns the inverse error function for |x| < 0.9966, relative error below 1e-6: the central
// polynomial of M. Giles, "Approximating the erfinv function", GPU Computing Gems, 2011.
double inverse_erf(double x) {
  constexpr std::array<double, 9> coefficients{2.81022636e-08,  3.43273939e-07, -3.5233877e-06,
                                               -4.39150654e-06, 0.00021858087,  -0.00125372503,
                                               -0.00417768164,  0.246640727,    1.50140941};
  const double w = -std::log((1 - x) * (1 + x)) - 2.5;
  double sum = 0;
  for (const double coefficient : coefficients) {
    sum = sum * w + coefficient;
  }
  return sum * x;
}

// Returns the quantile function of the normal distribution cut at two: the distribution of
// redrawing, at one draw per value. erf(2 / sqrt(2)) is the mass between the cuts.
double truncated_normal(std::uint64_t bits) {
  constexpr double mass = 0.95449973610364158;
  const double u = (static_cast<double>(bits >> 11) + 0.5) * 0x1p-52 - 1;  // in (-1, 1)
  return std::clamp(std::numbers::sqrt2 * inverse_erf(mass * u), -2.0, 2.0);
}

// Draws from the uniform distribution with mean 0 and variance 1.
double uniform(std::uint64_t bits) {
  return std::numbers::sqrt3 * ((static_cast<double>(bits >> 11) + 0.5) * 0x1p-52 - 1);
}

void fill_range(const Initializer& initializer, std::uint64_t stream, std::size_t first,
                std::span<float> values) {
  const bool is_uniform = initializer.kind == Initializer::Kind::uniform;
  for (std::size_t i = 0; i < values.size(); ++i) {
    const std::uint64_t bits = random_bits(stream, first + i);
    const double draw = is_uniform ? uniform(bits) : truncated_normal(bits);
    values[i] = static_cast<float>(initializer.mean + initializer.stddev * draw);
  }
}

}  // namespace

std::uint64_t random_bits(std::uint64_t stream, std::uint64_t i) {
  std::uint64_t z = stream + (i + 1) * 0x9E3779B97F4A7C15ULL;
  z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9ULL;
  z = (z ^ (z >> 27)) * 0x94D049BB133111EBULL;
  return z ^ (z >> 31);
}

std::uint64_t fnv1a(std::string_view text) {
  std::uint64_t hash = 0xCBF29CE484222325ULL;
  for (const char c : text) {
    hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001B3ULL;
  }
  return hash;
}

void fill(const Initializer& initializer, std::uint64_t seed, std::string_view name,
          std::span<float> values, std::size_t first_draw) {
  if (initializer.kind == Initializer::Kind::constant) {
    std::ranges::fill(values, static_cast<float>(initializer.mean));
    return;
  }
  const std::uint64_t stream = fnv1a(name) + seed * 0xD1B54A32D192ED03ULL;
  // A thread costs about 50 us, a value about 20 ns: only large tensors justify several threads.
  constexpr std::size_t values_per_thread = 1u << 18;
  const std::size_t threads = std::clamp<std::size_t>(
      values.size() / values_per_thread, 1, std::max(1u, std::thread::hardware_concurrency()));
  const std::size_t share = divide_up(values.size(), threads);
  std::vector<std::jthread> workers;
  for (std::size_t first = share; first < values.size(); first += share) {
    const auto part = values.subspan(first, std::min(share, values.size() - first));
    workers.emplace_back(
        [=, &initializer] { fill_range(initializer, stream, first_draw + first, part); });
  }
  fill_range(initializer, stream, first_draw, values.first(std::min(share, values.size())));
}

}  // namespace cnn::layers
