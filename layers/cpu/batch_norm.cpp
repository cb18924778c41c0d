#include "layers/batch_norm.h"

#include <algorithm>
#include <array>

#include "layers/cpu/batch_norm_parts.h"
#include "layers/cpu/own_kernel.h"
#include "layers/cpu/rows.h"

namespace cnn::layers::cpu {

namespace {

// in: x, [gamma], beta, [residual]. out: y, m, v.
class Forward {
 public:
  Forward(const BatchNormAttributes& a, const TensorDesc& x, const Loops& loops)
      : attributes_(a), x_(x), chunks_(x), loops_(&loops_of(loops, x.type)) {}

  std::size_t workspace() const {
    Carver carver;
    const Scratch scratch(carver, chunks_);
    return carver.bytes();
  }

  void operator()(const Operands& operands) const {
    Carver carver(operands.workspace);
    const Scratch scratch(carver, chunks_);
    two_passes(
        chunks_, 1, [&](std::int64_t item) { sum(operands, scratch, item); },
        [&](const Unit& unit) { finish(operands, scratch, unit); },
        [&](std::int64_t item) { normalise(operands, scratch, item); });
  }

 private:
  struct Scratch {
    Scratch(Carver& carver, const Chunks& chunks)
        : factors(carver, chunks.blocks.padded_channels()),
          mean(carver.take<double>(chunks.items() * chunks.blocks.columns)),
          squares(carver.take<double>(chunks.items() * chunks.blocks.columns)),
          block(carver.take<float>(chunks.items() * chunks.blocks.columns * 3)) {}
    Factors factors;
    double *mean, *squares;  // by item and column, see Moments
    float* block;
  };

  void sum(const Operands& operands, const Scratch& scratch, std::int64_t item) const {
    const std::int64_t columns = chunks_.blocks.columns;
    Moments moments{.mean = scratch.mean + item * columns,
                    .squares = scratch.squares + item * columns,
                    .scratch = scratch.block + item * columns * 3};
    std::fill_n(moments.mean, columns, 0.0);
    std::fill_n(moments.squares, columns, 0.0);
    chunks_.visit_item(item, [&](std::int64_t offset, std::int64_t rows) {
      loops_->moments(advance(operands.in[0].data, offset, x_.type), rows, columns, moments);
    });
  }

  // The moments of the unit's channels from those of their chunks, as matrix_loops.h does it.
  void finish(const Operands& operands, const Scratch& scratch, const Unit& unit) const {
    std::array<double, 16> mean{}, squares{};
    for (std::int64_t chunk = 0; chunk < chunks_.per_group; ++chunk) {
      const std::int64_t item = unit.group * chunks_.per_group + chunk;
      const std::int64_t at = item * chunks_.blocks.columns + unit.column;
      const auto before = static_cast<double>(chunks_.first(chunk));
      const auto after = static_cast<double>(chunks_.first(chunk + 1));
      const double share = (after - before) / after;
      for (std::size_t i = 0; i < static_cast<std::size_t>(unit.columns); ++i) {
        const double distance = (scratch.mean + at)[i] - mean[i];
        mean[i] += distance * share;
        squares[i] += (scratch.squares + at)[i] + distance * distance * before * share;
      }
    }
    const std::int64_t channel = unit.group * chunks_.blocks.columns + unit.column;
    const std::int64_t real = real_channels(channel, unit.columns, x_);
    const auto count = static_cast<double>(chunks_.blocks.pixels());
    float* const m = operands.out[1].as<float>().data() + channel;
    float* const v = operands.out[2].as<float>().data() + channel;
    for (std::size_t i = 0; i < static_cast<std::size_t>(real); ++i) {
      m[i] = static_cast<float>(mean[i]);
      v[i] = static_cast<float>(squares[i] / count);
    }
    scratch.factors.set(vectors(operands), attributes_.epsilon, channel, real, unit.columns);
  }

  BatchNormVectors vectors(const Operands& operands) const {
    const bool scale = attributes_.scale;
    return {.gamma = scale ? operands.in[1].as<float>().data() : nullptr,
            .beta = operands.in[scale ? 2 : 1].as<float>().data(),
            .mean = operands.out[1].as<float>().data(),
            .variance = operands.out[2].as<float>().data()};
  }

  void normalise(const Operands& operands, const Scratch& scratch, std::int64_t item) const {
    const std::int64_t channel = chunks_.first_channel(item);
    chunks_.visit_item(item, [&](std::int64_t offset, std::int64_t rows) {
      NormaliseRows of{.x = advance(operands.in[0].data, offset, x_.type),
                       .y = advance(operands.out[0].data, offset, x_.type),
                       .mean = scratch.factors.mean + channel,
                       .scale = scratch.factors.scale + channel,
                       .shift = scratch.factors.shift + channel,
                       .rows = rows,
                       .columns = chunks_.blocks.columns,
                       .relu = attributes_.relu,
                       .stream = is_streamed(operands, operands.out[0])};
      if (attributes_.residual) {
        of.residual = advance(operands.in.back().data, offset, x_.type);
      }
      loops_->normalise(of);
    });
  }

  BatchNormAttributes attributes_;
  TensorDesc x_;
  Chunks chunks_;
  const TypedLoops* loops_;
};

}  // namespace

void add_batch_norm_rows(KernelTable& table, const Loops& loops) {
  table.add<BatchNorm>(
      [&loops](const BatchNorm& op, const Signature& asked) -> std::optional<KernelSpec> {
        if (!is_vectorised(asked.in[0].type)) {
          return std::nullopt;
        }
        KernelSpec spec = in_layout(asked, channels_together(asked));
        spec.workspace = Forward(op.attributes, spec.in[0], loops).workspace();
        return spec;
      },
      [&loops](const BatchNorm& op, const Signature& s) {
        return own_kernel(Forward(op.attributes, s.in[0], loops));
      });
}

}  // namespace cnn::layers::cpu
