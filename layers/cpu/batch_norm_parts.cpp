#include "layers/cpu/batch_norm_parts.h"

#include <algorithm>
#include <cmath>

#include "runtime/divide_up.h"

namespace cnn::layers::cpu {

Chunks::Chunks(const TensorDesc& image) : blocks(blocks_of(image)) {
  constexpr std::int64_t most = 64;         // enough for as many threads in one group
  constexpr std::int64_t elements = 65536;  // a chunk's partial sums are small in comparison
  const std::int64_t pixels = std::max<std::int64_t>(64, elements / blocks.columns);
  per_group = std::clamp<std::int64_t>(divide_up(blocks.pixels(), pixels), 1, most);
  bytes_per_group =
      blocks.pixels() * blocks.columns * static_cast<std::int64_t>(size_of(image.type));
}

std::int64_t Chunks::grain() const {
  return std::max<std::int64_t>(1, elements_per_thread * items() / blocks.elements());
}

MergedMoments merge(const Chunks& chunks, const double* mean, const double* squares,
                    const Unit& unit) {
  MergedMoments merged;
  for (std::int64_t chunk = 0; chunk < chunks.per_group; ++chunk) {
    const std::int64_t item = unit.group * chunks.per_group + chunk;
    const std::int64_t at = item * chunks.blocks.columns + unit.column;
    const auto before = static_cast<double>(chunks.first(chunk));
    const auto after = static_cast<double>(chunks.first(chunk + 1));
    const double share = (after - before) / after;
    for (std::size_t i = 0; i < static_cast<std::size_t>(unit.columns); ++i) {
      const double distance = (mean + at)[i] - merged.mean[i];
      merged.mean[i] += distance * share;
      merged.squares[i] += (squares + at)[i] + distance * distance * before * share;
    }
  }
  return merged;
}

GradientSums merge_sums(const Chunks& chunks, const double* sums, const Unit& unit) {
  GradientSums merged;
  const std::int64_t columns = chunks.blocks.columns;
  for (std::int64_t chunk = 0; chunk < chunks.per_group; ++chunk) {
    const std::int64_t item = unit.group * chunks.per_group + chunk;
    const double* const from = sums + item * columns * 2 + unit.column;
    for (std::size_t i = 0; i < static_cast<std::size_t>(unit.columns); ++i) {
      merged.sum[i] += from[i];
      merged.product[i] += (from + columns)[i];
    }
  }
  return merged;
}

Factors::Factors(BumpAllocator& allocator, std::int64_t padded_channels)
    : mean(allocator.take<float>(padded_channels)),
      scale(allocator.take<float>(padded_channels)),
      scale_rest(allocator.take<float>(padded_channels)),
      shift(allocator.take<float>(padded_channels)) {}

void Factors::set(std::int64_t c, const ChannelMoments& moments, double gamma, double beta,
                  double epsilon) const {
  const double factor = gamma / std::sqrt(moments.variance + epsilon);
  mean[c] = static_cast<float>(moments.mean);
  scale[c] = static_cast<float>(factor);
  scale_rest[c] = static_cast<float>(factor - static_cast<double>(scale[c]));
  shift[c] = static_cast<float>(beta + (static_cast<double>(mean[c]) - moments.mean) * factor);
}

void Factors::set(const BatchNormVectors& from, double epsilon, std::int64_t first,
                  std::int64_t real, std::int64_t count) const {
  for (std::int64_t c = first; c < first + real; ++c) {
    set(c,
        {.mean = static_cast<double>(from.mean[c]),
         .variance = static_cast<double>(from.variance[c])},
        from.gamma == nullptr ? 1 : static_cast<double>(from.gamma[c]),
        static_cast<double>(from.beta[c]), epsilon);
  }
  clear(first + real, first + count);
}

void Factors::clear(std::int64_t begin, std::int64_t end) const {
  for (float* const vector : {mean, scale, scale_rest, shift}) {
    std::fill(vector + begin, vector + end, 0.0F);
  }
}

std::int64_t real_channels(std::int64_t first, std::int64_t count, const TensorDesc& image) {
  return std::clamp<std::int64_t>(image.shape[1] - first, 0, count);
}

GateBits gate_bits_of(const TensorView& mask, const Blocks& image, const Run& run) {
  auto* const data = reinterpret_cast<std::uint8_t*>(mask.data);
  const std::int64_t bytes = mask.desc.shape[1];
  const std::int64_t pixel = run.offset / image.columns;
  if (mask.desc.layout == Layout::nhwc) {
    return {.data = data + pixel * bytes, .row = bytes, .byte = 1, .bytes = bytes};
  }
  const std::int64_t segment = pixel / image.rows / image.groups;
  const std::int64_t plane = segment * bytes + run.group * 2;
  return {.data = data + plane * image.rows + pixel % image.rows,
          .row = 1,
          .byte = image.rows,
          .bytes = std::min<std::int64_t>(2, bytes - run.group * 2)};
}

KernelSpec in_layout_with_mask(const Signature& request, Layout layout) {
  KernelSpec spec = in_layout(request, layout);
  for (auto* side : {&spec.in, &spec.out}) {
    for (TensorDesc& desc : *side) {
      if (desc.type == DataType::u8 && layout == Layout::nchw16c) {
        desc.layout = Layout::nchw;
      }
    }
  }
  return spec;
}

double inverse_deviation(float variance, double epsilon) {
  return 1 / std::sqrt(static_cast<double>(variance) + epsilon);
}

}  // namespace cnn::layers::cpu
