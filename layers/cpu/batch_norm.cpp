#include "layers/batch_norm.h"

#include <algorithm>

#include "layers/cpu/batch_norm_parts.h"
#include "layers/cpu/own_kernel.h"
#include "layers/cpu/rows.h"

namespace cnn::layers::cpu {

namespace {

// in: x, [gamma], beta, [residual]. out: y, m, v, [mask].
class Forward {
 public:
  Forward(const BatchNorm& op, const TensorDesc& x, const Loops& loops)
      : attributes_(op.attributes), x_(x), chunks_(x), loops_(&loops_of(loops, x.type)) {}

  std::size_t workspace() const {
    BumpAllocator allocator;
    const Scratch scratch(allocator, chunks_);
    return allocator.bytes();
  }

  void operator()(const Operands& operands) const {
    BumpAllocator allocator(operands.workspace);
    Scratch scratch(allocator, chunks_);
    scratch.stream = is_streamed(operands, operands.out[0]);
    two_passes(
        chunks_, 1, [&](const Run& run) { sum(operands, scratch, run); },
        [&](const Unit& unit) { finish(operands, scratch, unit); },
        [&](const Run& run) { normalise(operands, scratch, run); });
  }

 private:
  struct Scratch {
    Scratch(BumpAllocator& allocator, const Chunks& chunks)
        : factors(allocator, chunks.blocks.padded_channels()),
          mean(allocator.take<double>(chunks.items() * chunks.blocks.columns)),
          squares(allocator.take<double>(chunks.items() * chunks.blocks.columns)),
          block(allocator.take<float>(chunks.items() * chunks.blocks.columns * 3)) {}
    Factors factors;
    double *mean, *squares;  // by item and column, see Moments
    float* block;
    bool stream = false;  // non-temporal stores of the large output
  };

  void sum(const Operands& operands, const Scratch& scratch, const Run& run) const {
    const std::int64_t columns = chunks_.blocks.columns;
    Moments moments{.mean = scratch.mean + run.item * columns,
                    .squares = scratch.squares + run.item * columns,
                    .scratch = scratch.block + run.item * columns * 3,
                    .count = static_cast<double>(run.before)};
    if (run.before == 0) {
      std::fill_n(moments.mean, columns, 0.0);
      std::fill_n(moments.squares, columns, 0.0);
    }
    loops_->moments(at(operands.in[0], run.offset), run.rows, columns, moments);
  }

  void finish(const Operands& operands, const Scratch& scratch, const Unit& unit) const {
    const auto [mean, squares] = merge(chunks_, scratch.mean, scratch.squares, unit);
    const std::int64_t channel = unit.group * chunks_.blocks.columns + unit.column;
    const std::int64_t real = real_channels(channel, unit.columns, x_);
    const auto count = static_cast<double>(chunks_.blocks.pixels());
    float* const m = operands.out[1].as<float>().data() + channel;
    float* const v = operands.out[2].as<float>().data() + channel;
    const BatchNormVectors from = vectors(operands);
    for (std::size_t i = 0; i < static_cast<std::size_t>(real); ++i) {
      const double quotient = squares[i] / count;
      const double variance = quotient < 0 ? 0 : quotient;  // rounding may go below; NaN stays
      m[i] = static_cast<float>(mean[i]);
      v[i] = static_cast<float>(variance);
      const std::int64_t c = channel + static_cast<std::int64_t>(i);
      scratch.factors.set(c, {.mean = mean[i], .variance = variance},
                          from.gamma == nullptr ? 1 : static_cast<double>(from.gamma[c]),
                          static_cast<double>(from.beta[c]), attributes_.epsilon);
    }
    scratch.factors.clear(channel + real, channel + unit.columns);
  }

  BatchNormVectors vectors(const Operands& operands) const {
    const bool scale = attributes_.scale;
    const NormOperandIndices place(scale);
    return {.gamma = scale ? operands.in[place.gamma].as<float>().data() : nullptr,
            .beta = operands.in[place.beta].as<float>().data(),
            .mean = operands.out[1].as<float>().data(),
            .variance = operands.out[2].as<float>().data()};
  }

  void normalise(const Operands& operands, const Scratch& scratch, const Run& run) const {
    const bool residual = attributes_.residual;
    const std::int64_t channel = run.group * chunks_.blocks.columns;
    loops_->normalise(
        {.x = at(operands.in[0], run.offset),
         .residual = residual ? at(operands.in.back(), run.offset) : nullptr,
         .y = at(operands.out[0], run.offset),
         .mean = scratch.factors.mean + channel,
         .scale = scratch.factors.scale + channel,
         .scale_rest = scratch.factors.scale_rest + channel,
         .shift = scratch.factors.shift + channel,
         .rows = run.rows,
         .columns = chunks_.blocks.columns,
         .relu = attributes_.relu,
         .limit = attributes_.limit,
         .mask = attributes_.mask ? gate_bits_of(operands.out[3], chunks_.blocks, run) : GateBits{},
         .stream = scratch.stream});
  }

  BatchNormAttributes attributes_;
  TensorDesc x_;
  Chunks chunks_;
  const TypedLoops* loops_;
};

}  // namespace

void add_batch_norm_rows(KernelTable& table, const Loops& loops) {
  add_two_pass_row<BatchNorm, Forward>(table, loops);
}

}  // namespace cnn::layers::cpu
