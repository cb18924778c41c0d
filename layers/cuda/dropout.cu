#include <cmath>

#include "layers/cuda/flat.cuh"
#include "layers/cuda/gate.cuh"
#include "layers/cuda/own_kernel.h"
#include "layers/cuda/random.cuh"
#include "layers/cuda/rows.h"
#include "layers/dropout.h"
#include "layers/operands.h"

// Dropout. Memory traffic is minimal: x is read and y written once, 2 S. The mask is never stored;
// the gradient draws it again.
namespace cnn::layers::cuda {

namespace {

// The dropout mask, as keeps() in layers/dropout.h defines it.
struct Mask {
  const std::int32_t* step = nullptr;
  std::uint64_t seed = 0;
  std::uint32_t threshold = 0;  // an element is kept if its 24 random bits are below it
  float keep = 1;
  // Counters number the elements in nchw order, whatever the layout, so that all backends draw the
  // same mask. With one pixel, nchw and nhwc orders are equal.
  std::int64_t channels = 1, pixels = 1;

  // Returns the counter of the element at this index of an nhwc image.
  __device__ std::int64_t counter(std::int64_t index) const {
    if (pixels == 1) {
      return index;
    }
    const std::int64_t row = index / channels;
    return (row / pixels * channels + index % channels) * pixels + row % pixels;
  }
};

// Writes y, which may alias x.
template <class T>
__global__ void __launch_bounds__(flat_threads) drop(const T* x, T* y, std::int64_t n, Mask mask) {
  const std::uint64_t stream = stream_of_step(mask.seed, mask.step);
  each_pack<full_width<T>>(n, [&](std::int64_t at, auto width) {
    float values[decltype(width)::value];
    load<decltype(width)::value>(x + at, values);
#pragma unroll
    for (int i = 0; i < decltype(width)::value; ++i) {
      const auto counter = static_cast<std::uint64_t>(mask.counter(at + i));
      const bool kept = (random_bits_of(stream, counter) >> 40U) < mask.threshold;
      values[i] = gated(values[i] / mask.keep, kept);
    }
    store<decltype(width)::value>(y + at, values);
  });
}

void run(Stream& stream, const Operands& o, const Dropout& op) {
  const Shape& shape = o.in[0].desc.shape;
  Mask mask{.step = data_of<const std::int32_t>(o.in[1]),
            .seed = op.seed,
            .threshold = static_cast<std::uint32_t>(std::ceil(op.keep * 0x1p24)),
            .keep = static_cast<float>(op.keep)};
  if (shape.rank() == 4) {
    mask.channels = shape[1];
    mask.pixels = shape[2] * shape[3];
  }
  with_type(o.in[0].desc.type, [&](auto tag) {
    using T = typename decltype(tag)::Type;
    const std::int64_t n = shape.elements();
    launch_flat(drop<T>, n / full_width<T>, stream, data_of<const T>(o.in[0]), data_of<T>(o.out[0]),
                n, mask);
  });
}

}  // namespace

void add_dropout_rows(KernelTable& table) {
  table.add<Dropout>(
      [](const Dropout&, const Signature& request) { return describe_floats(request); },
      [](const Dropout& op, const Signature&) {
        return own_kernel([op](Stream& stream, const Operands& o) { run(stream, o, op); });
      });
}

}  // namespace cnn::layers::cuda
