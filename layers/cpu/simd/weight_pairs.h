#pragma once

#include <cstdint>

// The loops that round weights from f32 to the pairs of bf16 that products take. loops.h states the
// rules of all loops.
namespace cnn::layers::cpu {

inline constexpr std::int64_t weight_block = 16;  // channels of each kind in a block

// A block of 16 x 16 weights: `from` has 16 rows of inputs, each of 16 outputs. `to` has eight
// lines of [16 channels][2 channels of the other kind].
struct WeightBlock {
  const float* from = nullptr;
  std::int64_t from_row = 0;  // floats from one row to the next
  std::uint16_t* to = nullptr;
  std::int64_t to_line = 0;  // words from one line to the next
};

struct WeightPairLoops {
  void (*pair_inputs)(const WeightBlock& block);   // lines of [16 outputs][2 inputs]
  void (*pair_outputs)(const WeightBlock& block);  // lines of [16 inputs][2 outputs]
};

// Requires a processor with AVX512_BF16. Numbers that are subnormal become zero.
const WeightPairLoops& avx512_bf16_weight_pairs();

}  // namespace cnn::layers::cpu
