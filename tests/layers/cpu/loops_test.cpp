#include "layers/cpu/simd/loops.h"

#include <array>
#include <bit>
#include <cmath>
#include <gtest/gtest.h>
#include <limits>
#include <string_view>
#include <vector>

#include "layers/cpu/isa.h"
#include "layers/dropout.h"
#include "layers/initializer.h"
#include "runtime/tensor.h"
#include "tests/layers/cpu/own_kernels.h"

namespace cnn::tests {
namespace {

class SimdLoops : public testing::TestWithParam<const layers::cpu::Loops*> {};

// The instruction of AVX512_BF16 rounds subnormal numbers to zero.
std::uint16_t rounded(float value, const layers::cpu::Loops& loops) {
  const bool to_zero = layers::cpu::up_to(loops.name).avx512_bf16 &&
                       std::abs(value) < std::numeric_limits<float>::min();
  return to_bf16(to_zero ? std::copysign(0.0F, value) : value).bits;
}

TEST_P(SimdLoops, RoundToBf16LikeTheScalarConversion) {
  std::vector<float> values;
  // Covers signs, exponents, infinities and NaNs.
  for (std::uint32_t upper = 0; upper < 0x10000; upper += 3) {
    for (const std::uint32_t lower : {0U, 1U, 0x7fffU, 0x8000U, 0x8001U, 0xffffU}) {
      values.push_back(std::bit_cast<float>(upper << 16 | lower));
    }
  }
  std::vector<std::uint16_t> words(values.size());
  const std::array<float, 2> identity{1, 0};
  const auto n = static_cast<std::int64_t>(values.size());
  std::vector<float> back(values.size());
  GetParam()->f32.scale(values.data(), back.data(), n, 1);
  GetParam()->bf16.affine_f32(values.data(), words.data(), n, identity.data());
  for (std::size_t i = 0; i < values.size(); ++i) {
    const float value = values[i] * 1 + 0;  // -0 becomes 0, a signalling NaN a quiet one
    ASSERT_EQ(words[i], rounded(value, *GetParam()))
        << std::hex << std::bit_cast<std::uint32_t>(values[i]);
  }
}

TEST_P(SimdLoops, WriteExactlyTheElementsAskedFor) {
  for (std::int64_t n = 0; n < 40; ++n) {
    std::vector<float> x(40, 1.5F), y(41, 7);
    std::vector<std::uint16_t> words(41, 7), from(40, to_bf16(1.5F).bits);
    GetParam()->f32.scale(x.data(), y.data(), n, 2);
    GetParam()->bf16.scale(from.data(), words.data(), n, 2);
    for (std::int64_t i = 0; i <= 40; ++i) {
      const auto at = static_cast<std::size_t>(i);
      EXPECT_EQ(y[at], i < n ? 3 : 7);
      EXPECT_EQ(words[at], i < n ? to_bf16(3).bits : 7);
    }
  }
}

TEST_P(SimdLoops, DrawTheBitsOfTheMask) {
  std::array<std::uint8_t, 9> keep{};
  const std::uint64_t stream = layers::random_bits(5, 11);
  GetParam()->random_below(stream, 1000, 69, 1U << 23, keep.data());
  for (std::uint64_t i = 0; i < 69; ++i) {
    const bool kept = (keep[i / 8] >> (i % 8) & 1) != 0;
    EXPECT_EQ(kept, layers::keeps(5, 11, 1000 + i, 0.5)) << i;
  }
}

TEST_P(SimdLoops, SumSquaresInDouble) {
  std::vector<float> x(100000, 1e-4F);
  x[0] = 1e4F;  // in f32, every further square would be lost
  EXPECT_NEAR(GetParam()->sum_of_squares(x.data(), 100000), 1e8 + 99999e-8, 1e-4);
}

INSTANTIATE_TEST_SUITE_P(Own, SimdLoops, testing::ValuesIn(runnable_loops()),
                         [](const auto& row) { return row.param->name; });

}  // namespace
}  // namespace cnn::tests
