#include "layers/cpu/average_pool.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "layers/cpu/own_kernel.h"
#include "layers/cpu/parallel.h"
#include "layers/cpu/simd/average_pool.h"
#include "layers/pool.h"

namespace cnn::layers::cpu {
namespace {

// The windows along one axis of an image of `pixels` pixels, of which a pool makes `windows`.
struct PoolAxis {
  std::int64_t pixels = 0, windows = 0;
  std::int64_t kernel = 1, stride = 1, pad = 0;

  // Returns the pixels that window i covers.
  PixelRange window(std::int64_t i) const {
    const std::int64_t first = i * stride - pad;
    return {std::max<std::int64_t>(first, 0), std::min(first + kernel, pixels)};
  }
  // Returns the windows that cover a pixel.
  PixelRange windows_at(std::int64_t pixel) const {
    const std::int64_t last = (pixel + pad) / stride;
    const std::int64_t before = pixel + pad - kernel;  // The first window begins after it.
    const std::int64_t first = before < 0 ? 0 : before / stride + 1;
    return {first, std::max(first, std::min(last + 1, windows))};
  }
};

// The terms that the sums of a pool or of its gradient have along one axis.
struct AxisSums {
  std::vector<PixelRange> ranges;  // of the pixels that are read, by pixel that is written
  std::vector<float> factors;      // by pixel that is read
  std::vector<float> counts;       // by pixel that is written: what its sum is divided by
};

float covered(const PoolAxis& axis, std::int64_t window) {
  const PixelRange pixels = axis.window(window);
  return static_cast<float>(pixels.end - pixels.begin);
}

AxisSums forward_sums(const PoolAxis& axis) {
  AxisSums sums;
  sums.factors.assign(static_cast<std::size_t>(axis.pixels), 1.0F);
  for (std::int64_t i = 0; i < axis.windows; ++i) {
    sums.ranges.push_back(axis.window(i));
    sums.counts.push_back(covered(axis, i));
  }
  return sums;
}

// A pixel takes the share of each window that covers it; these windows are consecutive.
AxisSums backward_sums(const PoolAxis& axis) {
  AxisSums sums;
  for (std::int64_t i = 0; i < axis.windows; ++i) {
    sums.factors.push_back(1.0F / covered(axis, i));
  }
  sums.counts.assign(static_cast<std::size_t>(axis.pixels), 1.0F);
  for (std::int64_t pixel = 0; pixel < axis.pixels; ++pixel) {
    sums.ranges.push_back(axis.windows_at(pixel));
  }
  return sums;
}

// The sums of either direction, from images like `from` to images like `to`.
class AveragePoolSums {
 public:
  AveragePoolSums(AxisSums rows, AxisSums columns, const TensorDesc& from, const TensorDesc& to,
                  const AveragePoolLoops& loops)
      : rows_(std::move(rows)),
        columns_(std::move(columns)),
        from_(from),
        to_(to),
        loop_(from.type == DataType::f32 ? loops.f32 : loops.bf16),
        groups_(blocks_of(from).groups),
        channels_(blocks_of(from).columns),
        team_(team_size()) {
    for (const float row : rows_.counts) {
      for (const float column : columns_.counts) {
        scales_.push_back(1.0F / (row * column));
      }
    }
  }

  std::size_t workspace() const {
    return static_cast<std::size_t>(team_ * own_sums()) * sizeof(float);
  }

  void operator()(const Operands& o) const {
    float* const sums = reinterpret_cast<float*>(o.workspace.data());
    const std::int64_t height = to_.shape[2];
    const std::int64_t rows = to_.shape[0] * groups_ * height;
    const std::int64_t grain = elements_per_thread / own_sums() + 1;
    const std::int64_t shares = std::clamp<std::int64_t>(rows / grain, 1, team_);
    parallel_for(shares, 1, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t share = begin; share < end; ++share) {
        for (std::int64_t i = rows * share / shares; i < rows * (share + 1) / shares; ++i) {
          run_row(o, i / height, i % height, sums + share * own_sums());
        }
      }
    });
  }

 private:
  // Returns how many floats a thread needs for the sums of a row.
  std::int64_t own_sums() const { return from_.shape[3] * channels_; }

  // image: the number of an image, or in nchw16c that of a group of channels of all images.
  void run_row(const Operands& o, std::int64_t image, std::int64_t row, float* sums) const {
    const std::int64_t pixels_of_from = from_.shape[2] * from_.shape[3], width = to_.shape[3];
    loop_({.from = at(o.in[0], image * pixels_of_from * channels_),
           .to = at(o.out[0], (image * to_.shape[2] + row) * width * channels_),
           .sums = sums,
           .channels = channels_,
           .width = from_.shape[3],
           .pixels = width,
           .rows = rows_.ranges[static_cast<std::size_t>(row)],
           .columns = columns_.ranges.data(),
           .scale = scales_.data() + row * width,
           .row_factors = rows_.factors.data(),
           .column_factors = columns_.factors.data()});
  }

  AxisSums rows_, columns_;
  std::vector<float> scales_;  // [height][width] of `to`
  TensorDesc from_, to_;
  void (*loop_)(const AveragePoolRow& row);
  std::int64_t groups_, channels_;  // channels of a group, with padding
  std::int64_t team_;
};

PoolAxis rows_of(const Window& w, const Shape& x, const Shape& y) {
  return {x[2], y[2], w.kernel_h, w.stride_h, w.pad_top};
}
PoolAxis columns_of(const Window& w, const Shape& x, const Shape& y) {
  return {x[3], y[3], w.kernel_w, w.stride_w, w.pad_left};
}

AveragePoolSums sums_of(const AveragePool& op, const Signature& s, const AveragePoolLoops& loops) {
  const TensorDesc &x = s.in[0], &y = s.out[0];
  return {forward_sums(rows_of(op.window, x.shape, y.shape)),
          forward_sums(columns_of(op.window, x.shape, y.shape)), x, y, loops};
}

AveragePoolSums sums_of(const AveragePoolBackward& op, const Signature& s,
                        const AveragePoolLoops& loops) {
  const TensorDesc &x = s.out[0], &y = s.in[0];
  return {backward_sums(rows_of(op.window, x.shape, y.shape)),
          backward_sums(columns_of(op.window, x.shape, y.shape)), y, x, loops};
}

template <class O>
void add_row(KernelTable& table, const AveragePoolLoops& loops) {
  table.add<O>(
      [&loops](const O& op, const Signature& request) -> std::optional<KernelSpec> {
        if (!is_vectorised(request.in[0].type)) {
          return std::nullopt;
        }
        KernelSpec spec = in_layout(request, channels_together(request));
        spec.workspace = sums_of(op, {.in = spec.in, .out = spec.out}, loops).workspace();
        return spec;
      },
      [&loops](const O& op, const Signature& s) { return own_kernel(sums_of(op, s, loops)); });
}

}  // namespace

void add_average_pool_rows(KernelTable& table, const Isa& isa) {
  const AveragePoolLoops& loops = isa.avx512_bf16 ? avx512_bf16_average_pool()
                                  : isa.avx512    ? avx512_average_pool()
                                                  : avx2_average_pool();
  add_row<AveragePool>(table, loops);
  add_row<AveragePoolBackward>(table, loops);
}

}  // namespace cnn::layers::cpu
