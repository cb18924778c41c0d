#include "layers/cpu/max_pool.h"

#include <algorithm>

#include "layers/cpu/own_kernel.h"
#include "layers/cpu/parallel.h"
#include "layers/cpu/simd/max_pool.h"
#include "layers/pool.h"

// Reads each pixel of the image from memory once; further reads by overlapping windows hit the
// caches.
namespace cnn::layers::cpu {
namespace {

constexpr std::int64_t max_indices = 256;  // of u8

using RowLoop = void (*)(const MaxPoolRow& row);

// Channels that only pad the last block of nchw16c have no maximum: writes zeros as their indices.
void clear_padding(const TensorView& indices, std::int64_t image) {
  const Blocks blocks = blocks_of(indices.desc);
  const std::int64_t real = indices.desc.shape[1] - image % blocks.groups * blocks.columns;
  if (real >= blocks.columns) {
    return;
  }
  const std::int64_t pixels = indices.desc.shape[2] * indices.desc.shape[3];
  std::uint8_t* const first = indices.as<std::uint8_t>().data() + image * pixels * blocks.columns;
  for (std::int64_t pixel = 0; pixel < pixels; ++pixel) {
    std::fill(first + pixel * blocks.columns + real, first + (pixel + 1) * blocks.columns,
              std::uint8_t{0});
  }
}

void run_max_pool(RowLoop loop, const Window& window, const Operands& o) {
  const TensorView &x = o.in[0], &y = o.out[0];
  const Blocks of_x = blocks_of(x.desc), of_y = blocks_of(y.desc);
  const std::int64_t images = x.desc.shape[0] * of_x.groups;
  const std::int64_t rows = y.desc.shape[2], outputs = y.desc.shape[3];
  const std::int64_t pixels_of_x = x.desc.shape[2] * x.desc.shape[3];
  const std::int64_t taps = window.kernel_h * window.kernel_w;
  parallel_for(
      images * rows, elements_per_thread / (outputs * of_y.columns * taps) + 1,
      [&](std::int64_t begin, std::int64_t end) {
        for (std::int64_t i = begin; i < end; ++i) {
          const std::int64_t to = i * outputs * of_y.columns;
          loop({.x = at(x, i / rows * pixels_of_x * of_x.columns),
                .y = at(y, to),
                .indices = o.out.size() > 1 ? o.out[1].as<std::uint8_t>().data() + to : nullptr,
                .columns = of_y.columns,
                .height = x.desc.shape[2],
                .width = x.desc.shape[3],
                .outputs = outputs,
                .top = i % rows * window.stride_h - window.pad_top,
                .left = -window.pad_left,
                .kernel_h = window.kernel_h,
                .kernel_w = window.kernel_w,
                .stride_w = window.stride_w});
        }
      });
  for (std::int64_t image = 0; o.out.size() > 1 && image < images; ++image) {
    clear_padding(o.out[1], image);
  }
}

}  // namespace

void add_max_pool_rows(KernelTable& table, const Isa& isa) {
  const MaxPoolLoops& loops = isa.avx512_bf16 ? avx512_bf16_max_pool()
                              : isa.avx512    ? avx512_max_pool()
                                              : avx2_max_pool();
  table.add<MaxPool>(
      [](const MaxPool& op, const Signature& request) -> std::optional<KernelSpec> {
        const std::int64_t taps = op.window.kernel_h * op.window.kernel_w;
        if (!is_vectorised(request.in[0].type) || (op.indices && taps > max_indices)) {
          return std::nullopt;
        }
        return in_layout(request, channels_together(request));
      },
      [&loops](const MaxPool& op, const Signature& s) {
        const RowLoop loop = s.in[0].type == DataType::f32 ? loops.f32 : loops.bf16;
        return own_kernel(
            [loop, window = op.window](const Operands& o) { run_max_pool(loop, window, o); });
      });
}

}  // namespace cnn::layers::cpu
