#include "tests/support/formula.h"

#include <cmath>

#include "layers/initializer.h"

namespace cnn::tests {
namespace {

std::uint64_t stream_of(std::string_view name, std::uint64_t seed) {
  return layers::fnv1a(name) + seed * 0xD1B54A32D192ED03U;
}

float unit_of(std::uint64_t bits) { return static_cast<float>(bits >> 40) * 0x1p-23F - 1.0F; }

struct Line {
  float offset = 0, slope = 1;  // the value is offset + slope * u
};

Line line_of(std::string_view name, const Shape& saved) {
  const std::string_view last = name.substr(name.rfind('/') + 1);
  if (last == "gamma") {
    return {1, 0.125F};
  }
  if (last == "moving_variance") {
    return {1, 0.25F};
  }
  if (last == "beta" || last == "moving_mean" || last == "biases" || last == "bias") {
    return {0, 0.0625F};
  }
  const double fan_in =
      static_cast<double>(saved.elements()) / static_cast<double>(saved[saved.rank() - 1]);
  return {0, static_cast<float>(std::sqrt(6 / fan_in))};
}

}  // namespace

std::uint64_t formula_bits(std::string_view name, std::uint64_t i, std::uint64_t seed) {
  return layers::random_bits(stream_of(name, seed), i);
}

float formula_unit(std::string_view name, std::uint64_t i, std::uint64_t seed) {
  return unit_of(formula_bits(name, i, seed));
}

std::vector<float> formula_variable(std::string_view name, const Shape& saved, std::uint64_t seed) {
  const Line line = line_of(name, saved);
  const std::uint64_t stream = stream_of(name, seed);
  std::vector<float> values(static_cast<std::size_t>(saved.elements()));
  for (std::size_t i = 0; i < values.size(); ++i) {
    values[i] = line.offset + line.slope * unit_of(layers::random_bits(stream, i));
  }
  return values;
}

std::vector<float> formula_images(std::int64_t batch, std::int64_t size, std::uint64_t seed) {
  const std::int64_t block = size / 8;
  const std::int64_t blocks = (size + block - 1) / block;
  std::vector<float> values;
  values.reserve(static_cast<std::size_t>(batch * size * size * 3));
  for (std::int64_t n = 0; n < batch; ++n) {
    for (std::int64_t h = 0; h < size; ++h) {
      for (std::int64_t w = 0; w < size; ++w) {
        const std::int64_t coarse = (n * blocks + h / block) * blocks + w / block;
        const std::int64_t fine = (n * size + h) * size + w;
        for (std::int64_t c = 0; c < 3; ++c) {
          const auto i = static_cast<std::uint64_t>(coarse * 3 + c);
          const auto j = static_cast<std::uint64_t>(fine * 3 + c);
          values.push_back(
              0.5F * (formula_unit("images/coarse", i, seed) + formula_unit("images", j, seed)));
        }
      }
    }
  }
  return values;
}

std::vector<std::int32_t> formula_labels(std::int64_t batch, std::int32_t first, std::int32_t count,
                                         std::uint64_t seed) {
  std::vector<std::int32_t> labels;
  for (std::int64_t i = 0; i < batch; ++i) {
    const std::uint64_t bits = formula_bits("labels", static_cast<std::uint64_t>(i), seed) >> 33;
    labels.push_back(first + static_cast<std::int32_t>(bits % static_cast<std::uint64_t>(count)));
  }
  return labels;
}

}  // namespace cnn::tests
