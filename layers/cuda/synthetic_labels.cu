#include "layers/cuda/flat.cuh"
#include "layers/cuda/own_kernel.h"
#include "layers/cuda/random.cuh"
#include "layers/cuda/rows.h"
#include "layers/loss.h"

// Labels drawn on the device in every step.
namespace cnn::layers::cuda {

namespace {

// Writes n labels in [0, bound), with the values of SyntheticLabels' reference loops.
__global__ void __launch_bounds__(flat_threads)
    draw_labels(const std::int32_t* step, std::uint64_t seed, std::uint64_t bound,
                std::int32_t* labels, std::int64_t n) {
  const std::uint64_t stream = stream_of_step(seed, step);
  for (std::int64_t i = flat_thread(); i < n; i += flat_stride()) {
    const std::uint64_t bits = random_bits_of(stream, static_cast<std::uint64_t>(i)) >> 33U;
    labels[i] = static_cast<std::int32_t>(bits % bound);
  }
}

}  // namespace

void add_synthetic_labels_rows(KernelTable& table) {
  table.add<SyntheticLabels>(
      [](const SyntheticLabels&, const Signature& request) { return in_nhwc(request); },
      [](const SyntheticLabels& op, const Signature&) {
        return own_kernel([op](Stream& stream, const Operands& o) {
          launch_flat(draw_labels, op.batch, stream, data_of<const std::int32_t>(o.in[0]), op.seed,
                      static_cast<std::uint64_t>(op.bound), data_of<std::int32_t>(o.out[0]),
                      op.batch);
        });
      });
}

}  // namespace cnn::layers::cuda
