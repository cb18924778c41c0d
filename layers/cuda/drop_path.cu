#include "layers/cuda/flat.cuh"
#include "layers/cuda/gate.cuh"
#include "layers/cuda/own_kernel.h"
#include "layers/cuda/random.cuh"
#include "layers/cuda/rows.h"
#include "layers/drop_path.h"

// Drop path (stochastic depth). Memory traffic is minimal: x is read and y written once, 2 S. There
// is no mask in memory, because every thread draws the random number of its example again.
namespace cnn::layers::cuda {

namespace {

// The mask of examples, as keeps_path() and DropPathSchedule::kept() in layers/drop_path.h define
// it.
struct PathMask {
  const std::int32_t* step = nullptr;
  std::uint64_t seed = 0;
  std::uint32_t drop = 0;
  std::int32_t steps = 1;
  std::int64_t of_example = 1;  // elements of an example

  __device__ std::uint32_t threshold() const {
    const std::int64_t done = *step < 0 ? 0 : *step < steps ? *step : steps;
    return (1U << 24U) - static_cast<std::uint32_t>(drop * done / steps);
  }
};

// Writes y, which may alias x.
template <class T>
__global__ void __launch_bounds__(flat_threads)
    drop_examples(const T* x, T* y, std::int64_t n, PathMask mask) {
  const std::uint64_t stream = stream_of_step(mask.seed, mask.step);
  const std::uint32_t threshold = mask.threshold();
  const float keep = static_cast<float>(threshold) * 0x1p-24F;
  const auto is_kept = [&](std::int64_t example) {
    return (random_bits_of(stream, static_cast<std::uint64_t>(example)) >> 40U) < threshold;
  };
  each_pack<full_width<T>>(n, [&](std::int64_t at, auto width) {
    float values[decltype(width)::value];
    load<decltype(width)::value>(x + at, values);
    std::int64_t example = at / mask.of_example;
    std::int64_t end = (example + 1) * mask.of_example;
    bool kept = is_kept(example);
#pragma unroll
    for (int i = 0; i < decltype(width)::value; ++i) {
      if (at + i >= end) {  // the pack crosses into the next example
        ++example;
        end += mask.of_example;
        kept = is_kept(example);
      }
      values[i] = gated(values[i] / keep, kept);
    }
    store<decltype(width)::value>(y + at, values);
  });
}

void run(Stream& stream, const Operands& o, const DropPath& op) {
  const Shape& shape = o.in[0].desc.shape;
  const std::int64_t n = shape.elements();
  const PathMask mask{.step = data_of<const std::int32_t>(o.in[1]),
                      .seed = op.seed,
                      .drop = op.schedule.drop,
                      .steps = op.schedule.steps,
                      .of_example = n / shape[0]};
  with_type(o.in[0].desc.type, [&](auto tag) {
    using T = typename decltype(tag)::Type;
    launch_flat(drop_examples<T>, n / full_width<T>, stream, data_of<const T>(o.in[0]),
                data_of<T>(o.out[0]), n, mask);
  });
}

}  // namespace

void add_drop_path_rows(KernelTable& table) {
  table.add<DropPath>(
      [](const DropPath&, const Signature& request) { return describe_floats(request); },
      [](const DropPath& op, const Signature&) {
        return own_kernel([op](Stream& stream, const Operands& o) { run(stream, o, op); });
      });
}

}  // namespace cnn::layers::cuda
