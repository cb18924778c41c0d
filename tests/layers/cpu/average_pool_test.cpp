#include "layers/cpu/average_pool.h"

#include <cmath>
#include <gtest/gtest.h>
#include <limits>
#include <string>
#include <tuple>
#include <vector>

#include "layers/cpu/rows.h"
#include "layers/pool.h"
#include "tests/layers/cpu/own_kernels.h"
#include "tests/layers/cpu/run_op.h"

namespace cnn::tests {
namespace {

using layers::AveragePool;
using layers::AveragePoolBackward;
using test::distance;
using test::random_values;
using test::Values;

struct PoolCase {
  std::string name;
  Shape x;
  layers::Window window;

  Shape y() const { return {x[0], x[1], window.output_h(x[2]), window.output_w(x[3])}; }
};

std::vector<PoolCase> pool_cases() {
  return {
      {"inception_3x3_stride_1", {3, 48, 7, 9}, {3, 3, 1, 1, 1, 1, 1, 1}},
      {"densenet_2x2", {2, 24, 6, 6}, {2, 2, 2, 2}},
      {"pixels_between_windows", {2, 32, 10, 11}, {2, 3, 3, 4}},
      {"pixels_behind_windows", {1, 16, 8, 9}, {3, 3, 2, 2}},
      {"padding_at_the_end", {1, 17, 8, 6}, {3, 3, 2, 2, 0, 1, 0, 1}},
      {"whole_image", {2, 16, 5, 5}, {5, 5, 1, 1}},
      {"wide", {1, 16, 6, 20}, {15, 17, 1, 3, 7, 7, 8, 8}},
  };
}

using Parameter = std::tuple<PoolCase, Layout, DataType>;

class AveragePoolKernel : public testing::TestWithParam<Parameter> {
 protected:
  void SetUp() override {
    const layers::cpu::Isa isa = layers::cpu::effective_isa();
    if (!isa.avx2) {
      GTEST_SKIP() << "our loops need AVX2";
    }
    layers::cpu::add_average_pool_rows(table_, isa);
    layers::cpu::add_convert_rows(table_);
  }

  const PoolCase& pool() const { return std::get<0>(GetParam()); }
  DataType type() const { return std::get<2>(GetParam()); }
  Values run(const Op& op, const Values& in) const {
    return test::run_fast(table_, op, {in}, std::get<1>(GetParam())).out[0];
  }
  Values image() const { return random_values(pool().x, type(), 1); }
  Values gradient() const { return random_values(pool().y(), type(), 2); }
  AveragePool forward() const { return AveragePool(pool().window); }
  AveragePoolBackward backward() const { return {pool().window, pool().x}; }
  // Results are rounded once: by at most 1 / 256 of them in bf16.
  double tolerance() const { return type() == DataType::bf16 ? 1.0 / 256 : 1e-6; }

 private:
  KernelTable table_;
};

TEST_P(AveragePoolKernel, MeansEqualTheReference) {
  EXPECT_LE(distance(run(forward(), image()), test::run_reference(forward(), {image()})[0]),
            tolerance());
}

TEST_P(AveragePoolKernel, GradientsEqualTheReferenceAfterOneRounding) {
  const Values expected = test::run_reference(backward(), {gradient()})[0];
  EXPECT_LE(distance(run(backward(), gradient()), expected), tolerance());
}

TEST_P(AveragePoolKernel, HasTheSameBitsWithAnyNumberOfThreads) {
  const auto results = [&](int count) {
    const Threads threads(count);
    return std::vector{run(forward(), image()).data, run(backward(), gradient()).data};
  };
  const auto one = results(1);
  for (const int threads : {2, 3, 16}) {
    EXPECT_EQ(results(threads), one) << threads;
  }
}

TEST_P(AveragePoolKernel, PassesANaNToTheWindowsThatCoverIt) {
  Values x = image();
  x.data[x.data.size() / 2] = std::numeric_limits<float>::quiet_NaN();
  const Values got = run(forward(), x), expected = test::run_reference(forward(), {x})[0];
  for (std::size_t i = 0; i < expected.data.size(); ++i) {
    EXPECT_EQ(std::isnan(got.data[i]), std::isnan(expected.data[i])) << i;
  }
}

std::string name_of_case(const testing::TestParamInfo<Parameter>& info) {
  const auto& [pool, layout, type] = info.param;
  return pool.name + "_" + std::string(name_of(layout)) + "_" + std::string(name_of(type));
}

INSTANTIATE_TEST_SUITE_P(Shapes, AveragePoolKernel,
                         testing::Combine(testing::ValuesIn(pool_cases()),
                                          testing::Values(Layout::nchw16c, Layout::nhwc),
                                          testing::Values(DataType::f32, DataType::bf16)),
                         name_of_case);

}  // namespace
}  // namespace cnn::tests
