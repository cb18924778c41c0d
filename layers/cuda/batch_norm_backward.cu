#include "layers/batch_norm.h"
#include "layers/cuda/batch_norm_gradient.cuh"
#include "layers/cuda/batch_norm_parts.cuh"
#include "layers/cuda/own_kernel.h"
#include "layers/cuda/rows.h"
#include "layers/cuda/tile.cuh"

// The gradient of batch normalisation in two passes over the images: the first sums g and
// g (x - mean) by channel, the second writes dx. Memory traffic for images of S bytes: both passes
// read x and dy, and the second writes dx, 5 S, which is minimal for two passes. With a ReLU after
// a residual, the first pass also reads y and writes g, which the second pass reads instead of dy:
// 7 S, or 6 S and a bit per element with a mask instead of y. A fused gradient addition makes each
// pass that reads dy read dy2 too, which adds 2 S or 1 S; a separate Add node would add 3 S. The
// second pass reads its chunks from their end, which is still in the L2 cache.
namespace cnn::layers::cuda {

namespace {

// The kernel of a BatchNormBackward node. in: x, [gamma], beta, mean, variance, dy, [dy2], [y or
// mask]. out: dx, dbeta, [dgamma], [g].
class Backward {
 public:
  Backward(const BatchNormBackward& op, const TensorDesc& x)
      : op_(op), tile_(gradient_tile_of(x, op.joined)) {}

  std::size_t workspace() const {
    BumpAllocator allocator;
    (void)Scratch(allocator, tile_);
    return allocator.bytes();
  }

  void operator()(Stream& stream, const Operands& operands) const {
    with_type_and_width(operands.in[0].desc.type, tile_.width, [&](auto tag, auto width) {
      run<typename decltype(tag)::Type, decltype(width)::value>(stream, operands);
    });
  }

 private:
  struct Scratch {
    Scratch(BumpAllocator& allocator, const Tile& tile)
        : partials(allocator.take<float>(pair_floats(tile))),
          dgamma(allocator.take<float>(tile.channels)) {}
    float *partials, *dgamma;
  };

  Gate gate() const {
    if (!op_.passes_gradient()) {
      return op_.attributes.relu ? Gate::recomputed : Gate::open;
    }
    return op_.attributes.mask ? Gate::mask : Gate::output;
  }

  template <class T, int width>
  void run(Stream& stream, const Operands& operands) const {
    BumpAllocator allocator(operands.workspace);
    const Scratch scratch(allocator, tile_);
    const std::size_t dy = op_.index_of_dy();
    const bool passes = op_.passes_gradient();
    GradientPass<T> pass{
        .images = {.x = data_of<T>(operands.in[0]),
                   .dy = data_of<T>(operands.in[dy]),
                   .dy_pitch = pitch_of(operands.in[dy].desc),
                   .dy2 = op_.joined ? data_of<T>(operands.in[dy + 1]) : nullptr,
                   .y = passes ? data_of<T>(operands.in.back()) : nullptr,
                   .mask = passes ? data_of<std::uint8_t>(operands.in.back()) : nullptr,
                   .g = passes ? data_of<T>(operands.out.back()) : nullptr,
                   .dx = data_of<T>(operands.out[0])},
        .vectors = vectors_among(operands, op_.attributes),
        .tile = tile_,
        .gate = gate(),
        .limit = op_.attributes.limit,
        .partials = scratch.partials,
        .dbeta = data_of<float>(operands.out[1]),
        .dgamma = op_.attributes.scale ? data_of<float>(operands.out[2]) : scratch.dgamma};
    launch_gradient_sums<T, width>(pass, stream);
    if (passes) {
      pass.images.dy = pass.images.g;
      pass.images.dy_pitch = tile_.channels;
      pass.images.dy2 = nullptr;  // g is the sum
    }
    launch_input_gradient<T, width>(pass, 1 / static_cast<float>(tile_.rows), stream);
  }

  BatchNormBackward op_;
  Tile tile_;
};

}  // namespace

void add_batch_norm_backward_rows(KernelTable& table) {
  table.add<BatchNormBackward>(
      [](const BatchNormBackward& op, const Signature& request) -> std::optional<KernelSpec> {
        if (op.attributes.mask && !has_mask(request.in[0])) {
          return std::nullopt;
        }
        KernelSpec spec = in_nhwc(request, Backward(op, request.in[0]).workspace());
        keep_pitch(spec.in[op.index_of_dy()], request.in[op.index_of_dy()]);
        return spec;
      },
      [](const BatchNormBackward& op, const Signature& s) {
        return own_kernel(Backward(op, s.in[0]));
      });
}

}  // namespace cnn::layers::cuda
