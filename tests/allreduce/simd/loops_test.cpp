#include <array>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <gtest/gtest.h>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include "allreduce/simd/table.h"
#include "runtime/tensor.h"
#include "tests/allreduce/usable_loops.h"

namespace cnn::allreduce::simd {
namespace {

using tests::usable_loops;

constexpr std::array types{Type::f32, Type::bf16, Type::f16};

// Returns values of all magnitudes and both signs, some of them zero, subnormal or infinite.
std::vector<float> values(std::size_t n, unsigned seed) {
  std::mt19937 random(seed);
  std::normal_distribution<float> normal;
  std::uniform_int_distribution<int> exponent(-30, 14);
  std::vector<float> result(n);
  for (float& value : result) {
    value = std::ldexp(normal(random), exponent(random));
  }
  const std::array special{0.0F, -0.0F, 1e-41F, std::numeric_limits<float>::infinity()};
  for (std::size_t i = 0; i < special.size() && 7 * i < n; ++i) {
    result[7 * i] = special[i];
  }
  return result;
}

std::vector<std::uint32_t> bits(const std::vector<float>& values) {
  std::vector<std::uint32_t> result;
  result.reserve(values.size());
  for (const float value : values) {
    result.push_back(std::bit_cast<std::uint32_t>(value));
  }
  return result;
}

TEST(SimdLoops, RoundAsTensorsDo) {
  std::vector<float> all = values(4096, 1);
  std::mt19937 random(2);
  for (float& value : std::span(all).subspan(64)) {  // random bits, including NaNs
    value = std::bit_cast<float>(static_cast<std::uint32_t>(random()));
  }
  for (const Loops* const loops : usable_loops()) {
    std::vector<std::uint16_t> bf16(all.size()), f16(all.size());
    loops->narrow(all.data(), bf16.data(), all.size(), Type::bf16);
    loops->narrow(all.data(), f16.data(), all.size(), Type::f16);
    for (std::size_t i = 0; i < all.size(); ++i) {
      if (std::isnan(all[i])) {
        EXPECT_TRUE(std::isnan(to_float(BFloat16{bf16[i]}))) << loops->name;
        EXPECT_TRUE(std::isnan(to_float(Float16{f16[i]}))) << loops->name;
      } else {
        EXPECT_EQ(bf16[i], to_bf16(all[i]).bits) << loops->name << " " << all[i];
        EXPECT_EQ(f16[i], to_f16(all[i]).bits) << loops->name << " " << all[i];
      }
    }
  }
}

TEST(SimdLoops, WidenEveryWordAsTensorsDo) {
  std::vector<std::uint16_t> words(65536);
  for (std::size_t i = 0; i < words.size(); ++i) {
    words[i] = static_cast<std::uint16_t>(i);
  }
  for (const Loops* const loops : usable_loops()) {
    std::vector<float> bf16(words.size()), f16(words.size()), plain(words.size());
    loops->widen(words.data(), bf16.data(), words.size(), Type::bf16);
    loops->widen(words.data(), f16.data(), words.size(), Type::f16);
    plain_loops().widen(words.data(), plain.data(), words.size(), Type::f16);
    EXPECT_EQ(bits(f16), bits(plain)) << loops->name;
    for (std::size_t i = 0; i < words.size(); ++i) {
      if (const float right = to_float(Float16{words[i]}); !std::isnan(right)) {
        ASSERT_EQ(f16[i], right) << loops->name;
      }
      ASSERT_EQ(std::bit_cast<std::uint32_t>(bf16[i]), std::uint32_t{words[i]} << 16U);
    }
  }
}

struct Case {
  std::size_t count, n;
  bool pairwise;
  Type type, round_to;  // type of all operands but the first
};

std::vector<std::vector<std::uint32_t>> sums(const Loops& loops, const Case& test_case) {
  std::vector<std::vector<float>> x;
  std::vector<std::vector<std::uint16_t>> narrow(test_case.count);
  std::vector<Operand> operands;
  for (std::size_t k = 0; k < test_case.count; ++k) {
    x.push_back(values(test_case.n, 10 + static_cast<unsigned>(k)));
    narrow[k].resize(test_case.n);
    plain_loops().narrow(x[k].data(), narrow[k].data(), test_case.n, test_case.type);
  }
  for (std::size_t k = 0; k < test_case.count; ++k) {
    const bool wide = k == 0 || test_case.type == Type::f32;
    operands.push_back(wide ? Operand{x[k].data(), Type::f32}
                            : Operand{narrow[k].data(), test_case.type});
  }
  std::vector<float> beside(test_case.n, -1);
  // The first output overwrites an operand.
  const std::array<float*, 2> to{x[0].data(), beside.data()};
  loops.sum({operands.data(), test_case.count, to.data(), 2, test_case.n, test_case.pairwise, 0.3F,
             test_case.round_to});
  return {bits(x[0]), bits(beside)};
}

TEST(SimdLoops, AddToTheSameBitsAsPlainLoops) {
  for (const Loops* const loops : usable_loops()) {
    for (const std::size_t count : {1, 2, 3, 4, 5, 8, 11, 64}) {
      for (const std::size_t n : {0, 1, 7, 8, 16, 17, 100, 512, 1039}) {
        for (const bool pairwise : {false, true}) {
          for (const Type type : types) {
            const Case test_case{count, n, pairwise, type, type};
            EXPECT_EQ(sums(*loops, test_case), sums(plain_loops(), test_case))
                << loops->name << " " << count << " operands, " << n;
          }
        }
      }
    }
  }
}

TEST(SimdLoops, AddInTheOrderAskedFor) {
  const float big = 1 << 24;  // adding 1 to it changes nothing
  std::vector<std::array<float, 33>> x(4);
  for (std::size_t k = 0; k < 4; ++k) {
    x[k].fill(k == 0 ? big : 1.0F);
  }
  std::vector<Operand> operands;
  operands.reserve(x.size());
  for (const auto& operand : x) {
    operands.push_back({operand.data(), Type::f32});
  }
  std::array<float, 33> out{};
  float* const to = out.data();
  for (const Loops* const loops : usable_loops()) {
    loops->sum({operands.data(), 4, &to, 1, 33, false});
    EXPECT_EQ(out[0], big) << loops->name;
    EXPECT_EQ(out[32], big) << loops->name;
    loops->sum({operands.data(), 4, &to, 1, 33, true});
    EXPECT_EQ(out[0], big + 2) << loops->name;
    EXPECT_EQ(out[32], big + 2) << loops->name;
  }
}

}  // namespace
}  // namespace cnn::allreduce::simd
