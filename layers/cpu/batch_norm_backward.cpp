#include <algorithm>

#include "layers/batch_norm.h"
#include "layers/cpu/batch_norm_parts.h"
#include "layers/cpu/own_kernel.h"
#include "layers/cpu/rows.h"

namespace cnn::layers::cpu {

namespace {

// in: x, [gamma], beta, m, v, dy, [dy2], [y or mask]. out: dx, dbeta, [dgamma], [g].
class Backward {
 public:
  Backward(const BatchNormBackward& op, const TensorDesc& x, const Loops& loops)
      : op_(op), x_(x), chunks_(x), loops_(&loops_of(loops, x.type)) {}

  std::size_t workspace() const {
    BumpAllocator allocator;
    const Scratch scratch(allocator, chunks_);
    return allocator.bytes();
  }

  void operator()(const Operands& operands) const {
    BumpAllocator allocator(operands.workspace);
    Scratch scratch(allocator, chunks_);
    scratch.stream = is_streamed(operands, operands.out[0]);
    scratch.factors.set(vectors(operands), op_.attributes.epsilon, 0, x_.shape[1],
                        chunks_.blocks.padded_channels());
    two_passes(
        chunks_, images(), [&](const Run& run) { sum(operands, scratch, run); },
        [&](const Unit& unit) { finish(operands, scratch, unit); },
        [&](const Run& run) { differentiate(operands, scratch, run); });
  }

 private:
  struct Scratch {
    Scratch(BumpAllocator& allocator, const Chunks& chunks)
        : factors(allocator, chunks.blocks.padded_channels()),
          slope(allocator.take<float>(chunks.blocks.padded_channels())),
          offset(allocator.take<float>(chunks.blocks.padded_channels())),
          sums(allocator.take<double>(chunks.items() * chunks.blocks.columns * 2)),
          block(allocator.take<float>(chunks.items() * chunks.blocks.columns * 2)) {}
    Factors factors;
    float *slope, *offset;
    double* sums;  // by item: of g, then of g (x - m), by column
    float* block;
    bool stream = false;  // non-temporal stores of the large output
  };

  // Returns the number of images that a cache should hold between the passes.
  std::int64_t images() const { return 2 + (op_.passes_gradient() ? 1 : 0) + (op_.joined ? 1 : 0); }

  BatchNormVectors vectors(const Operands& operands) const {
    return vectors_among(operands.in, op_.attributes.scale);
  }

  NormaliseGradientRows rows_of(const Operands& operands, const Scratch& scratch,
                                const Run& run) const {
    const std::int64_t channel = run.group * chunks_.blocks.columns;
    return {.x = at(operands.in[0], run.offset),
            .dy = at(operands.in[op_.index_of_dy()], run.offset),
            .dy2 = op_.joined ? at(operands.in[op_.index_of_dy() + 1], run.offset) : nullptr,
            .mean = scratch.factors.mean + channel,
            .scale = scratch.factors.scale + channel,
            .scale_rest = scratch.factors.scale_rest + channel,
            .shift = scratch.factors.shift + channel,
            .slope = scratch.slope + channel,
            .offset = scratch.offset + channel,
            .rows = run.rows,
            .columns = chunks_.blocks.columns,
            .gate = gate_from_x(op_.attributes),
            .limit = op_.attributes.limit};
  }

  void sum(const Operands& operands, const Scratch& scratch, const Run& run) const {
    const std::int64_t width = chunks_.blocks.columns * 2;
    double* const sums = scratch.sums + run.item * width;
    if (run.before == 0) {
      std::fill_n(sums, width, 0.0);
    }
    NormaliseGradientRows rows = rows_of(operands, scratch, run);
    if (op_.passes_gradient()) {
      rows.g = at(operands.out.back(), run.offset);
      if (op_.attributes.mask) {
        rows.gate = Gate::mask;
        rows.mask = gate_bits_of(operands.in.back(), chunks_.blocks, run);
      } else {
        rows.gate = Gate::output;
        rows.y = at(operands.in.back(), run.offset);
      }
    }
    loops_->gradient_sums(rows, sums, scratch.block + run.item * width);
  }

  // dx = scale (g - sum g / n - (x - m) / (v + e) sum (g (x - m)) / n).
  void finish(const Operands& operands, const Scratch& scratch, const Unit& unit) const {
    const auto [sum, product] = merge_sums(chunks_, scratch.sums, unit);
    const std::int64_t channel = unit.group * chunks_.blocks.columns + unit.column;
    const std::int64_t real = real_channels(channel, unit.columns, x_);
    const auto count = static_cast<double>(chunks_.blocks.pixels());
    std::fill_n(scratch.slope + channel, unit.columns, 0.0F);
    std::fill_n(scratch.offset + channel, unit.columns, 0.0F);
    for (std::int64_t c = channel; c < channel + real; ++c) {
      const auto i = static_cast<std::size_t>(c - channel);
      const auto at = static_cast<std::size_t>(c);
      const double inverse =
          inverse_deviation(vectors(operands).variance[c], op_.attributes.epsilon);
      const auto scale = static_cast<double>(scratch.factors.scale[c]);
      scratch.slope[c] = static_cast<float>(-scale * inverse * inverse * product[i] / count);
      scratch.offset[c] = static_cast<float>(-scale * sum[i] / count);
      operands.out[1].as<float>()[at] = static_cast<float>(sum[i]);
      if (op_.attributes.scale) {
        operands.out[2].as<float>()[at] = static_cast<float>(product[i] * inverse);
      }
    }
  }

  void differentiate(const Operands& operands, const Scratch& scratch, const Run& run) const {
    NormaliseGradientRows rows = rows_of(operands, scratch, run);
    rows.dx = at(operands.out[0], run.offset);
    rows.stream = scratch.stream;
    if (op_.passes_gradient()) {  // the first pass has written the gated gradient
      rows.gate = Gate::open;
      rows.dy = at(operands.out.back(), run.offset);
      rows.dy2 = nullptr;
    }
    loops_->gradient(rows);
  }

  BatchNormBackward op_;
  TensorDesc x_;
  Chunks chunks_;
  const TypedLoops* loops_;
};

}  // namespace

void add_batch_norm_backward_rows(KernelTable& table, const Loops& loops) {
  add_two_pass_row<BatchNormBackward, Backward>(table, loops);
}

}  // namespace cnn::layers::cpu
