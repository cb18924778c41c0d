#pragma once

#include <cstdint>
#include <vector>

#include "layers/cpu/own_kernel.h"
#include "layers/cpu/simd/tile_dense.h"
#include "runtime/divide_up.h"

// Dense layers of a few rows in bf16 by matrix tiles (Intel AMX). The speed of memory limits them,
// so they read f32 weights and round these in the first-level cache: bf16 copies would be written
// once and read twice. All sums have a fixed order.
namespace cnn::layers::cpu {

// x [rows, ins] and y [rows, outs] in bf16, w f32 [ins, outs] stored as [outs / 64][ins][64].
struct TileDenseProblem {
  std::int64_t rows = 0, ins = 0, outs = 0;
  bool bias = false, relu = false;  // relu: of the forward pass

  std::int64_t row_tiles() const { return divide_up(rows, dense_rows); }
  std::int64_t slabs() const { return outs / dense_slab; }
  // Returns whether the loops take it: up to 64 rows, and whole slabs and tiles.
  bool is_supported() const {
    return rows > 0 && row_tiles() <= max_dense_tiles && ins > 0 && ins % dense_depth == 0 &&
           outs > 0 && outs % dense_slab == 0;
  }
};

// y = relu(x w + bias). in: x, w, [bias f32 [outs]]. out: y.
class TileDenseForward {
 public:
  explicit TileDenseForward(const TileDenseProblem& problem) : problem_(problem) {}
  std::size_t workspace() const;
  void operator()(const Operands& o) const;

 private:
  std::uint16_t* carve(BumpAllocator& allocator) const;  // x in tiles
  TileDenseProblem problem_;
};

// dx = dy w^T. in: dy, w. out: dx.
class TileDenseBackwardData {
 public:
  explicit TileDenseBackwardData(const TileDenseProblem& problem) : problem_(problem) {}
  std::size_t workspace() const;
  void operator()(const Operands& o) const;

 private:
  std::uint16_t* carve(BumpAllocator& allocator) const;  // dy in tiles
  TileDenseProblem problem_;
};

// dw = x^T dy, dbias = the sum of dy over all rows. in: x, dy. out: dw, [dbias f32 [outs]].
class TileDenseBackwardWeights {
 public:
  // The loops, which sum the bias, must outlive it.
  TileDenseBackwardWeights(const TileDenseProblem& problem, const Loops& loops);
  std::size_t workspace() const;
  void operator()(const Operands& o) const;

 private:
  struct Tiles {
    std::uint16_t* x;   // [ins / 16][steps][16 inputs][32 rows]
    std::uint16_t* dy;  // [outs / 16][steps][16 pairs of rows][16 outputs][2]
  };
  Tiles carve(BumpAllocator& allocator) const;
  std::int64_t steps() const;

  TileDenseProblem problem_;
  const Loops* loops_;
  std::vector<std::int32_t> rows_;  // the numbers of the rows of all steps, -1 after the last
};

}  // namespace cnn::layers::cpu
