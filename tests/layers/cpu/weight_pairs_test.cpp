#include "layers/cpu/weight_pairs.h"

#include <cmath>
#include <gtest/gtest.h>
#include <limits>
#include <string>
#include <vector>

#include "layers/cpu/isa.h"
#include "tests/layers/cpu/own_kernels.h"

namespace cnn::tests {
namespace {

using layers::cpu::WeightOrders;
using layers::cpu::WeightPairs;

struct OrdersCase {
  std::string name;
  WeightOrders orders;
};

// The shapes differ in what is paired, in blocks, and in whether taps or pairs change first.
std::vector<OrdersCase> orders_cases() {
  return {
      {"inputs",
       {.outs = 64,
        .ins = 32,
        .taps = 9,
        .from_next_out = 2 * 9 * 256,
        .from_next_in = 9 * 256,
        .from_next_tap = 256,
        .together = 32,
        .pairs = 16,
        .to_next_together = 32 * 32 * 9,
        .to_next_pairs = 32 * 32,
        .to_next_tap = 32 * 32}},
      {"outputs_taps_last",
       {.outs = 32,
        .ins = 64,
        .taps = 4,
        .from_next_out = 4 * 4 * 256,
        .from_next_in = 4 * 256,
        .from_next_tap = 256,
        .pairs_outputs = true,
        .to_next_together = 32 * 16 * 4,
        .to_next_pairs = 16 * 16 * 4,
        .to_next_tap = 16 * 16}},
      {"outputs_without_blocks_of_pairs",
       {.outs = 48,
        .ins = 64,
        .from_outs = 48,
        .from_next_out = 0,
        .from_next_in = 16 * 48,
        .pairs_outputs = true,
        .together = 64,
        .pairs = 1,
        .to_next_together = 64 * 48,
        .to_next_pairs = 64 * 2}},
  };
}

class WeightPairsOf : public testing::TestWithParam<OrdersCase> {
 protected:
  void SetUp() override {
    if (!layers::cpu::effective_isa().avx512_bf16) {
      GTEST_SKIP() << "this processor lacks avx512_bf16";
    }
  }
  static std::int64_t count() {
    return GetParam().orders.outs * GetParam().orders.ins * GetParam().orders.taps;
  }
  // The places of a weight before and after.
  static std::size_t before(std::int64_t out, std::int64_t in, std::int64_t tap) {
    const WeightOrders& w = GetParam().orders;
    return static_cast<std::size_t>(out / w.from_outs * w.from_next_out + in / 16 * w.from_next_in +
                                    tap * w.from_next_tap + in % 16 * w.from_outs +
                                    out % w.from_outs);
  }
  static std::size_t after(std::int64_t out, std::int64_t in, std::int64_t tap) {
    const WeightOrders& w = GetParam().orders;
    const std::int64_t paired = w.pairs_outputs ? out : in, other = w.pairs_outputs ? in : out;
    const std::int64_t pair = paired / 2;
    return static_cast<std::size_t>(other / w.together * w.to_next_together + tap * w.to_next_tap +
                                    pair / w.pairs * w.to_next_pairs +
                                    (pair % w.pairs * w.together + other % w.together) * 2 +
                                    paired % 2);
  }
  static HostTensor converted(const HostTensor& from, int threads) {
    const Threads team(threads);
    HostTensor to({.shape = {count()}, .type = DataType::bf16});
    std::ranges::fill(to.view().as<BFloat16>(), to_bf16(std::nanf("")));
    WeightPairs(GetParam().orders)({.in = {from.view()}, .out = {to.view()}, .workspace = {}});
    EXPECT_TRUE(to.guard_is_intact());
    return to;
  }
};

TEST_P(WeightPairsOf, AreEachWeightRoundedInItsPlace) {
  const HostTensor from = draws({count()}, DataType::f32, 1);
  const WeightOrders& w = GetParam().orders;
  for (const int threads : {1, 2, 5}) {
    const HostTensor to = converted(from, threads);
    const auto given = from.view().as<float>();
    const auto got = to.view().as<BFloat16>();
    for (std::int64_t out = 0; out < w.outs; ++out) {
      for (std::int64_t in = 0; in < w.ins; ++in) {
        for (std::int64_t tap = 0; tap < w.taps; ++tap) {
          ASSERT_EQ(got[after(out, in, tap)].bits, to_bf16(given[before(out, in, tap)]).bits)
              << out << ", " << in << ", " << tap;
        }
      }
    }
  }
}

TEST_P(WeightPairsOf, KeepNumbersThatAreNotFinite) {
  const HostTensor from = draws({count()}, DataType::f32, 1);
  from.view().as<float>()[before(3, 5, 0)] = std::nanf("");
  from.view().as<float>()[before(4, 5, 0)] = -std::numeric_limits<float>::infinity();
  const HostTensor to = converted(from, 2);
  const auto got = to.view().as<BFloat16>();
  EXPECT_TRUE(std::isnan(to_float(got[after(3, 5, 0)])));
  EXPECT_EQ(to_float(got[after(4, 5, 0)]), -std::numeric_limits<float>::infinity());
  EXPECT_TRUE(std::isfinite(to_float(got[after(5, 5, 0)])));
}

INSTANTIATE_TEST_SUITE_P(Orders, WeightPairsOf, testing::ValuesIn(orders_cases()),
                         [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace cnn::tests
