#include "layers/sliced_norm.h"

#include <algorithm>
#include <array>

#include "layers/cpu/batch_norm_parts.h"
#include "layers/cpu/own_kernel.h"
#include "layers/cpu/rows.h"

namespace cnn::layers::cpu {

namespace {

// in: x. out: mean, squares.
class SliceMoments {
 public:
  SliceMoments(const NormMoments& /*op*/, const TensorDesc& x, const Loops& loops)
      : x_(x), chunks_(x), loops_(&loops_of(loops, x.type)) {}

  std::size_t workspace() const {
    BumpAllocator allocator;
    const Scratch scratch(allocator, chunks_);
    return allocator.bytes();
  }

  void operator()(const Operands& operands) const {
    BumpAllocator allocator(operands.workspace);
    const Scratch scratch(allocator, chunks_);
    chunks_.each_run_in_parallel({0, chunks_.blocks.groups}, false,
                                 [&](const Run& run) { sum(operands, scratch, run); });
    for (std::int64_t group = 0; group < chunks_.blocks.groups; ++group) {
      each_unit(chunks_.blocks, group, [&](const Unit& unit) { finish(operands, scratch, unit); });
    }
  }

 private:
  struct Scratch {
    Scratch(BumpAllocator& allocator, const Chunks& chunks)
        : mean(allocator.take<double>(chunks.items() * chunks.blocks.columns)),
          squares(allocator.take<double>(chunks.items() * chunks.blocks.columns)),
          block(allocator.take<float>(chunks.items() * chunks.blocks.columns * 3)) {}
    double *mean, *squares;  // by item and column, see Moments
    float* block;
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
    const MergedMoments merged = merge(chunks_, scratch.mean, scratch.squares, unit);
    const std::int64_t channel = unit.group * chunks_.blocks.columns + unit.column;
    const auto real = static_cast<std::size_t>(real_channels(channel, unit.columns, x_));
    const auto narrow = [](double value) { return static_cast<float>(value); };
    std::transform(merged.mean.begin(), merged.mean.begin() + real,
                   operands.out[0].as<float>().begin() + channel, narrow);
    std::transform(merged.squares.begin(), merged.squares.begin() + real,
                   operands.out[1].as<float>().begin() + channel, narrow);
  }

  TensorDesc x_;
  Chunks chunks_;
  const TypedLoops* loops_;
};

// in: x, [gamma], beta, m, v, dy, [dy2], [y]. out: dbeta, dgamma, [g].
class SliceSums {
 public:
  SliceSums(const NormGradientSums& op, const TensorDesc& x, const Loops& loops)
      : op_(op), x_(x), chunks_(x), loops_(&loops_of(loops, x.type)) {}

  std::size_t workspace() const {
    BumpAllocator allocator;
    const Scratch scratch(allocator, chunks_);
    return allocator.bytes();
  }

  void operator()(const Operands& operands) const {
    BumpAllocator allocator(operands.workspace);
    const Scratch scratch(allocator, chunks_);
    scratch.factors.set(vectors_among(operands.in, op_.attributes.scale), op_.attributes.epsilon, 0,
                        x_.shape[1], chunks_.blocks.padded_channels());
    const bool stream = op_.passes_gradient() && is_streamed(operands, operands.out.back());
    chunks_.each_run_in_parallel({0, chunks_.blocks.groups}, false,
                                 [&](const Run& run) { sum(operands, scratch, stream, run); });
    for (std::int64_t group = 0; group < chunks_.blocks.groups; ++group) {
      each_unit(chunks_.blocks, group, [&](const Unit& unit) { finish(operands, scratch, unit); });
    }
  }

 private:
  struct Scratch {
    Scratch(BumpAllocator& allocator, const Chunks& chunks)
        : factors(allocator, chunks.blocks.padded_channels()),
          sums(allocator.take<double>(chunks.items() * chunks.blocks.columns * 2)),
          block(allocator.take<float>(chunks.items() * chunks.blocks.columns * 2)) {}
    Factors factors;
    double* sums;  // by item: of g, then of g (x - m), by column
    float* block;
  };

  void sum(const Operands& operands, const Scratch& scratch, bool stream, const Run& run) const {
    const std::int64_t columns = chunks_.blocks.columns;
    double* const sums = scratch.sums + run.item * columns * 2;
    if (run.before == 0) {
      std::fill_n(sums, columns * 2, 0.0);
    }
    const std::int64_t channel = run.group * columns;
    const std::size_t dy = op_.index_of_dy();
    NormaliseGradientRows rows{.x = at(operands.in[0], run.offset),
                               .dy = at(operands.in[dy], run.offset),
                               .dy2 = op_.joined ? at(operands.in[dy + 1], run.offset) : nullptr,
                               .mean = scratch.factors.mean + channel,
                               .scale = scratch.factors.scale + channel,
                               .scale_rest = scratch.factors.scale_rest + channel,
                               .shift = scratch.factors.shift + channel,
                               .rows = run.rows,
                               .columns = columns,
                               .gate = gate_from_x(op_.attributes),
                               .limit = op_.attributes.limit,
                               .stream = stream};
    if (op_.passes_gradient()) {
      rows.gate = Gate::output;
      rows.y = at(operands.in.back(), run.offset);
      rows.g = at(operands.out.back(), run.offset);
    }
    loops_->gradient_sums(rows, sums, scratch.block + run.item * columns * 2);
  }

  void finish(const Operands& operands, const Scratch& scratch, const Unit& unit) const {
    const GradientSums merged = merge_sums(chunks_, scratch.sums, unit);
    const std::int64_t channel = unit.group * chunks_.blocks.columns + unit.column;
    const std::int64_t real = real_channels(channel, unit.columns, x_);
    const auto variance =
        operands.in[NormOperandIndices(op_.attributes.scale).variance].as<float>();
    for (std::int64_t c = channel; c < channel + real; ++c) {
      const auto i = static_cast<std::size_t>(c - channel);
      const auto to = static_cast<std::size_t>(c);
      const double inverse = inverse_deviation(variance[to], op_.attributes.epsilon);
      operands.out[0].as<float>()[to] = static_cast<float>(merged.sum[i]);
      operands.out[1].as<float>()[to] = static_cast<float>(merged.product[i] * inverse);
    }
  }

  NormGradientSums op_;
  TensorDesc x_;
  Chunks chunks_;
  const TypedLoops* loops_;
};

// in: x, [gamma], beta, m, v, dbeta, dgamma, g, [dy2]. out: dx.
class SliceGradient {
 public:
  SliceGradient(const NormInputGradient& op, const TensorDesc& x, const Loops& loops)
      : op_(op), x_(x), chunks_(x), loops_(&loops_of(loops, x.type)) {}

  std::size_t workspace() const {
    BumpAllocator allocator;
    const Scratch scratch(allocator, chunks_);
    return allocator.bytes();
  }

  void operator()(const Operands& operands) const {
    BumpAllocator allocator(operands.workspace);
    const Scratch scratch(allocator, chunks_);
    scratch.factors.set(vectors_among(operands.in, op_.attributes.scale), op_.attributes.epsilon, 0,
                        x_.shape[1], chunks_.blocks.padded_channels());
    set_coefficients(operands, scratch);
    const bool stream = is_streamed(operands, operands.out[0]);
    chunks_.each_run_in_parallel({0, chunks_.blocks.groups}, false, [&](const Run& run) {
      differentiate(operands, scratch, stream, run);
    });
  }

 private:
  struct Scratch {
    Scratch(BumpAllocator& allocator, const Chunks& chunks)
        : factors(allocator, chunks.blocks.padded_channels()),
          slope(allocator.take<float>(chunks.blocks.padded_channels())),
          offset(allocator.take<float>(chunks.blocks.padded_channels())) {}
    Factors factors;
    float *slope, *offset;
  };

  // dx = scale g + slope (x - m) + offset, as in BatchNormBackward.
  void set_coefficients(const Operands& operands, const Scratch& scratch) const {
    const std::int64_t channels = chunks_.blocks.padded_channels();
    std::fill_n(scratch.slope, channels, 0.0F);
    std::fill_n(scratch.offset, channels, 0.0F);
    const std::size_t sums = op_.index_of_sums();
    const auto variance =
        operands.in[NormOperandIndices(op_.attributes.scale).variance].as<float>();
    for (std::int64_t c = 0; c < x_.shape[1]; ++c) {
      const auto i = static_cast<std::size_t>(c);
      const double inverse = inverse_deviation(variance[i], op_.attributes.epsilon);
      const auto scale = static_cast<double>(scratch.factors.scale[c]);
      const auto dbeta = static_cast<double>(operands.in[sums].as<float>()[i]);
      const auto dgamma = static_cast<double>(operands.in[sums + 1].as<float>()[i]);
      scratch.slope[c] = static_cast<float>(-scale * inverse * dgamma / op_.count);
      scratch.offset[c] = static_cast<float>(-scale * dbeta / op_.count);
    }
  }

  void differentiate(const Operands& operands, const Scratch& scratch, bool stream,
                     const Run& run) const {
    const std::int64_t channel = run.group * chunks_.blocks.columns;
    const std::size_t g = op_.index_of_sums() + 2;
    loops_->gradient({.x = at(operands.in[0], run.offset),
                      .dy = at(operands.in[g], run.offset),
                      .dy2 = op_.joined ? at(operands.in[g + 1], run.offset) : nullptr,
                      .dx = at(operands.out[0], run.offset),
                      .mean = scratch.factors.mean + channel,
                      .scale = scratch.factors.scale + channel,
                      .scale_rest = scratch.factors.scale_rest + channel,
                      .shift = scratch.factors.shift + channel,
                      .slope = scratch.slope + channel,
                      .offset = scratch.offset + channel,
                      .rows = run.rows,
                      .columns = chunks_.blocks.columns,
                      .gate = op_.gates() ? gate_from_x(op_.attributes) : Gate::open,
                      .limit = op_.attributes.limit,
                      .stream = stream});
  }

  NormInputGradient op_;
  TensorDesc x_;
  Chunks chunks_;
  const TypedLoops* loops_;
};

}  // namespace

void add_sliced_norm_rows(KernelTable& table, const Loops& loops) {
  add_two_pass_row<NormMoments, SliceMoments>(table, loops);
  add_two_pass_row<NormGradientSums, SliceSums>(table, loops);
  add_two_pass_row<NormInputGradient, SliceGradient>(table, loops);
}

}  // namespace cnn::layers::cpu
