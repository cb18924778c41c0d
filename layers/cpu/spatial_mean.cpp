#include <algorithm>
#include <array>

#include "layers/cpu/own_kernel.h"
#include "layers/cpu/parallel.h"
#include "layers/cpu/rows.h"
#include "layers/pool.h"

namespace cnn::layers::cpu {

namespace {

float element(const TensorView& view, std::int64_t i) {
  const auto at = static_cast<std::size_t>(i);
  return view.desc.type == DataType::f32 ? view.as<float>()[at] : to_float(view.as<BFloat16>()[at]);
}

// An image as matrices of pixels x channels: 16 columns each or, in nhwc, all channels. Calls
// visit(image, first channel, stored columns, existing channels, offset in elements) for each.
struct Matrix {
  std::int64_t n = 0, channel = 0, columns = 0, channels = 0, offset = 0, pixels = 0;
};

template <class Visit>
void each_matrix(const TensorDesc& image, const Visit& visit) {
  const Place place(image);
  const std::int64_t channels = image.shape[1];
  const std::int64_t columns = image.layout == Layout::nhwc ? channels : 16;
  const std::int64_t groups = place.stored_channels() / columns;
  const std::int64_t grain = elements_per_thread / (place.pixels() * columns) + 1;
  parallel_for(image.shape[0] * groups, grain, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i) {
      const std::int64_t channel = i % groups * columns;
      visit(Matrix{.n = i / groups,
                   .channel = channel,
                   .columns = columns,
                   .channels = std::min(columns, channels - channel),
                   .offset = place(i / groups, channel, 0),
                   .pixels = place.pixels()});
    }
  });
}

// Returns the scratch bytes for the sums of every image; matrices do not share scratch.
std::size_t scratch_bytes(const TensorDesc& image) {
  return static_cast<std::size_t>(image.shape[0] * Place(image).stored_channels()) * sizeof(float);
}

float* scratch_of(const Operands& o, const TensorDesc& image, const Matrix& m) {
  return reinterpret_cast<float*>(o.workspace.data()) + m.n * Place(image).stored_channels() +
         m.channel;
}

void mean(const TypedLoops& typed, const Operands& o) {
  const TensorDesc& image = o.in[0].desc;
  each_matrix(image, [&](const Matrix& m) {
    float* const sums = scratch_of(o, image, m);
    std::fill_n(sums, m.columns, 0.0F);
    typed.column_sums(at(o.in[0], m.offset), m.pixels, m.columns, sums);
    const std::array<float, 2> factors{1.0F / static_cast<float>(m.pixels), 0.0F};
    typed.affine_f32(sums, at(o.out[0], m.n * image.shape[1] + m.channel), m.channels,
                     factors.data());
  });
}

void spread(const TypedLoops& typed, const Operands& o) {
  const TensorDesc& image = o.out[0].desc;
  each_matrix(image, [&](const Matrix& m) {
    float* const values = scratch_of(o, image, m);
    std::fill_n(values, m.columns, 0.0F);
    for (std::int64_t c = 0; c < m.channels; ++c) {
      values[c] =
          element(o.in[0], m.n * image.shape[1] + m.channel + c) / static_cast<float>(m.pixels);
    }
    typed.repeat(values, at(o.out[0], m.offset), m.pixels, m.columns);
  });
}

// image: the operand of rank 4.
std::optional<KernelSpec> describe(const Signature& request, const TensorDesc& image) {
  if (!is_vectorised(image.type)) {
    return std::nullopt;
  }
  KernelSpec spec = in_layout(request, channels_together({.in = {image}, .out = request.out}));
  TensorDesc placed = image;
  placed.layout = spec.in[0].shape.rank() == 4 ? spec.in[0].layout : spec.out[0].layout;
  spec.workspace = scratch_bytes(placed);
  return spec;
}

}  // namespace

void add_spatial_mean_rows(KernelTable& table, const Loops& loops) {
  table.add<SpatialMean>(
      [](const SpatialMean&, const Signature& request) { return describe(request, request.in[0]); },
      [&loops](const SpatialMean&, const Signature& s) {
        const TypedLoops& typed = loops_of(loops, s.in[0].type);
        return own_kernel([&typed](const Operands& o) { mean(typed, o); });
      });
  table.add<SpatialMeanBackward>(
      [](const SpatialMeanBackward&, const Signature& request) {
        return describe(request, request.out[0]);
      },
      [&loops](const SpatialMeanBackward&, const Signature& s) {
        const TypedLoops& typed = loops_of(loops, s.out[0].type);
        return own_kernel([&typed](const Operands& o) { spread(typed, o); });
      });
}

}  // namespace cnn::layers::cpu
