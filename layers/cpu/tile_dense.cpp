#include "layers/cpu/tile_dense.h"

#include <algorithm>
#include <cstring>

#include "layers/cpu/simd/tile_gradient.h"
#include "runtime/divide_up.h"

namespace cnn::layers::cpu {
namespace {

using Word = std::uint16_t;
constexpr std::int64_t pair_bytes = 2 * sizeof(Word);

const Word* words_of(const TensorView& view) { return reinterpret_cast<const Word*>(view.data); }

// Copies x [rows, ins] to tiles [ins / 32][row tiles][16 rows][32 inputs], with zeros after the
// rows.
void tile_rows(const TileDenseProblem& problem, const Word* x, Word* to) {
  const std::int64_t places = problem.row_tiles() * dense_rows;
  const std::int64_t depth = problem.ins / dense_depth;
  parallel_for(depth, divide_up(elements_per_thread, places * dense_depth),
               [&](std::int64_t begin, std::int64_t end) {
                 for (std::int64_t i = begin * places; i < end * places; ++i) {
                   Word* const row = to + i * dense_depth;
                   if (i % places < problem.rows) {
                     std::copy_n(x + i % places * problem.ins + i / places * dense_depth,
                                 dense_depth, row);
                   } else {
                     std::fill_n(row, dense_depth, Word{0});
                   }
                 }
               });
}

// Copies dy [rows, outs] to tiles [outs / 32][row tiles][16 pairs of outputs][16 rows][2], with
// zeros after the rows.
void tile_pairs(const TileDenseProblem& problem, const Word* dy, Word* to) {
  const std::int64_t tiles = problem.row_tiles();
  const std::int64_t pairs_of_tile = dense_depth / 2;
  parallel_for(
      problem.outs / dense_depth, divide_up(elements_per_thread, tiles * dense_rows * dense_depth),
      [&](std::int64_t begin, std::int64_t end) {
        for (std::int64_t i = begin * tiles; i < end * tiles; ++i) {
          const Word* const from = dy + i / tiles * dense_depth;
          const std::int64_t first = i % tiles * dense_rows;
          for (std::int64_t place = 0; place < pairs_of_tile * dense_rows; ++place) {
            const std::int64_t row = first + place % dense_rows;
            Word* const pair = to + (i * pairs_of_tile * dense_rows + place) * 2;
            if (row < problem.rows) {
              std::memcpy(pair, from + row * problem.outs + place / dense_rows * 2, pair_bytes);
            } else {
              std::memset(pair, 0, pair_bytes);
            }
          }
        }
      });
}

}  // namespace

Word* TileDenseForward::carve(BumpAllocator& allocator) const {
  return allocator.take<Word>(problem_.row_tiles() * dense_rows * problem_.ins);
}

std::size_t TileDenseForward::workspace() const {
  BumpAllocator allocator;
  carve(allocator);
  return allocator.bytes();
}

void TileDenseForward::operator()(const Operands& o) const {
  BumpAllocator allocator(o.workspace);
  Word* const x = carve(allocator);
  tile_rows(problem_, words_of(o.in[0]), x);
  const float* const w = o.in[1].as<float>().data();
  const float* const bias = problem_.bias ? o.in[2].as<float>().data() : nullptr;
  parallel_for(problem_.slabs(), 1, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t slab = begin; slab < end; ++slab) {
      amx_bf16_tile_dense().forward(
          {.x = x,
           .steps = problem_.ins / dense_depth,
           .rows = problem_.rows,
           .row_tiles = problem_.row_tiles(),
           .w = w + slab * problem_.ins * dense_slab,
           .bias = bias == nullptr ? nullptr : bias + slab * dense_slab,
           .relu = problem_.relu,
           .y = reinterpret_cast<Word*>(o.out[0].data) + slab * dense_slab,
           .y_row = problem_.outs});
    }
  });
}

Word* TileDenseBackwardData::carve(BumpAllocator& allocator) const {
  return allocator.take<Word>(problem_.row_tiles() * dense_rows * problem_.outs);
}

std::size_t TileDenseBackwardData::workspace() const {
  BumpAllocator allocator;
  carve(allocator);
  return allocator.bytes();
}

void TileDenseBackwardData::operator()(const Operands& o) const {
  BumpAllocator allocator(o.workspace);
  Word* const dy = carve(allocator);
  tile_pairs(problem_, words_of(o.in[0]), dy);
  const float* const w = o.in[1].as<float>().data();
  parallel_for(problem_.ins / tile_channels, 1, [&](std::int64_t begin, std::int64_t end) {
    amx_bf16_tile_dense().backward(
        {.dy = dy,
         .slabs = problem_.slabs(),
         .rows = problem_.rows,
         .row_tiles = problem_.row_tiles(),
         .w = w + begin * tile_channels * dense_slab,
         .w_slab = problem_.ins * dense_slab,
         .dx = reinterpret_cast<Word*>(o.out[0].data) + begin * tile_channels,
         .dx_row = problem_.ins,
         .blocks = end - begin});
  });
}

TileDenseBackwardWeights::TileDenseBackwardWeights(const TileDenseProblem& problem,
                                                   const Loops& loops)
    : problem_(problem),
      loops_(&loops),
      rows_(static_cast<std::size_t>(steps() * tile_pixels), -1) {
  for (std::int64_t row = 0; row < problem.rows; ++row) {
    rows_[static_cast<std::size_t>(row)] = static_cast<std::int32_t>(row);
  }
}

std::int64_t TileDenseBackwardWeights::steps() const {
  return divide_up(problem_.rows, tile_pixels);
}

TileDenseBackwardWeights::Tiles TileDenseBackwardWeights::carve(BumpAllocator& allocator) const {
  Tiles tiles{};
  tiles.x = allocator.take<Word>(steps() * tile_pixels * problem_.ins);
  tiles.dy = allocator.take<Word>(steps() * tile_pixels * problem_.outs);
  return tiles;
}

std::size_t TileDenseBackwardWeights::workspace() const {
  BumpAllocator allocator;
  carve(allocator);
  return allocator.bytes();
}

void TileDenseBackwardWeights::operator()(const Operands& o) const {
  BumpAllocator allocator(o.workspace);
  const Tiles tiles = carve(allocator);
  const std::int64_t of_block = steps() * tile_words;
  const std::int64_t grain = divide_up(elements_per_thread, of_block);
  const auto pack = [&](const Word* from, std::int64_t channels, Word* to, auto loop) {
    parallel_for(channels / tile_channels, grain, [&](std::int64_t begin, std::int64_t end) {
      loop(TilePack{.image = from + begin * tile_channels,
                    .pixels = rows_.data(),
                    .channels = channels,
                    .steps = steps(),
                    .blocks = end - begin,
                    .to = to + begin * of_block,
                    .to_block = of_block});
    });
  };
  pack(words_of(o.in[0]), problem_.ins, tiles.x, amx_bf16_tile_gradient().pack_rows);
  pack(words_of(o.in[1]), problem_.outs, tiles.dy, amx_bf16_tile_gradient().pack_pairs);
  const bool stream = is_streamed(o, o.out[0]);
  const std::int64_t blocks = problem_.ins / tile_channels;
  parallel_for(problem_.slabs(), 1, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t slab = begin; slab < end; ++slab) {
      amx_bf16_tile_dense().gradient(
          {.x = tiles.x,
           .dy = tiles.dy + slab * dense_slab / tile_channels * of_block,
           .steps = steps(),
           .dw = o.out[0].as<float>().data() + slab * problem_.ins * dense_slab,
           .blocks = blocks,
           .stream = stream});
    }
  });
  if (problem_.bias) {
    const std::span<float> dbias = o.out[1].as<float>();
    std::ranges::fill(dbias, 0.0F);
    loops_->bf16.column_sums(words_of(o.in[1]), problem_.rows, problem_.outs, dbias.data());
  }
}

}  // namespace cnn::layers::cpu
