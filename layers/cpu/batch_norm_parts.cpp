#include "layers/cpu/batch_norm_parts.h"

#include <algorithm>
#include <cmath>

namespace cnn::layers::cpu {

Chunks::Chunks(const TensorDesc& image) : blocks(blocks_of(image)) {
  constexpr std::int64_t most = 64;         // enough for as many threads in one group
  constexpr std::int64_t elements = 65536;  // a chunk's partial sums are small beside it
  const std::int64_t pixels = std::max<std::int64_t>(64, elements / blocks.columns);
  per_group = std::clamp<std::int64_t>((blocks.pixels() + pixels - 1) / pixels, 1, most);
  bytes_per_group =
      blocks.pixels() * blocks.columns * static_cast<std::int64_t>(size_of(image.type));
}

std::int64_t Chunks::grain() const {
  return std::max<std::int64_t>(1, elements_per_thread * items() / blocks.elements());
}

Factors::Factors(Carver& carver, std::int64_t padded_channels)
    : mean(carver.take<float>(padded_channels)),
      scale(carver.take<float>(padded_channels)),
      shift(carver.take<float>(padded_channels)) {}

void Factors::set(const BatchNormVectors& from, double epsilon, std::int64_t first,
                  std::int64_t real, std::int64_t count) const {
  for (std::int64_t c = first; c < first + real; ++c) {
    const double gamma = from.gamma == nullptr ? 1 : static_cast<double>(from.gamma[c]);
    mean[c] = from.mean[c];
    scale[c] = static_cast<float>(gamma * inverse_deviation(from.variance[c], epsilon));
    shift[c] = from.beta[c];
  }
  for (float* const vector : {mean, scale, shift}) {
    std::fill(vector + first + real, vector + first + count, 0.0F);
  }
}

std::int64_t real_channels(std::int64_t first, std::int64_t count, const TensorDesc& image) {
  return std::clamp<std::int64_t>(image.shape[1] - first, 0, count);
}

double inverse_deviation(float variance, double epsilon) {
  return 1 / std::sqrt(static_cast<double>(variance) + epsilon);
}

}  // namespace cnn::layers::cpu
