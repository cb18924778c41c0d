#include "layers/pool.h"

#include <cmath>
#include <gtest/gtest.h>
#include <limits>
#include <string>
#include <tuple>
#include <vector>

#include "layers/cpu/average_pool.h"
#include "layers/cpu/max_pool.h"
#include "layers/cpu/rows.h"
#include "tests/layers/cpu/run_op.h"

namespace cnn::layers::cpu {
namespace {

using test::distance;
using test::random_values;
using test::Values;

struct PoolCase {
  std::string name;
  Shape x;
  Window window;
  // oneDNN adds the gradients of overlapping windows in bf16, so more overlap means more rounding.
  double bf16_tolerance = 1.0 / 128;
};

std::vector<PoolCase> pool_cases() {
  return {
      {"resnet_3x3_same", {2, 64, 12, 12}, {3, 3, 2, 2, 0, 1, 0, 1}},
      {"alexnet_3x3_valid", {1, 32, 13, 13}, {3, 3, 2, 2}},
      {"vgg_2x2", {2, 32, 8, 8}, {2, 2, 2, 2}},
      {"inception_3x3_stride_1", {1, 48, 7, 7}, {3, 3, 1, 1, 1, 1, 1, 1}},
      {"googlenet_odd", {1, 17, 9, 7}, {3, 3, 2, 2, 1, 1, 1, 1}},
      {"densenet_24", {2, 24, 6, 6}, {2, 2, 2, 2}},
      {"whole_image", {2, 16, 5, 5}, {5, 5, 1, 1}},
      {"wide", {1, 16, 6, 20}, {15, 17, 1, 3, 7, 7, 8, 8}, 1.0 / 32},
  };
}

KernelTable table_of_pools() {
  KernelTable table;
  add_average_pool_rows(table, effective_isa());
  add_max_pool_rows(table, effective_isa());
  add_pool_rows(table);
  add_convert_rows(table);
  return table;
}

using Parameter = std::tuple<PoolCase, Layout, DataType>;

class PoolDirections : public testing::TestWithParam<Parameter> {
 protected:
  const PoolCase& pool() const { return std::get<0>(GetParam()); }
  DataType type() const { return std::get<2>(GetParam()); }
  Shape output_shape() const {
    const PoolCase& c = pool();
    return {c.x[0], c.x[1], c.window.output_h(c.x[2]), c.window.output_w(c.x[3])};
  }

  void expect_equal(const Op& op, const std::vector<Values>& in) const {
    const test::Ran ran = test::run_fast(table_, op, in, std::get<1>(GetParam()));
    const std::vector<Values> expected = test::run_reference(op, in);
    const double tolerance = type() == DataType::bf16 ? pool().bf16_tolerance : 1e-6;
    for (std::size_t i = 0; i < expected.size(); ++i) {
      EXPECT_LE(distance(ran.out[i], expected[i]), tolerance)
          << "output " << i << " of " << to_string(ran.signature);
    }
  }

 private:
  KernelTable table_ = table_of_pools();
};

TEST_P(PoolDirections, MaximaEqualTheReference) {
  expect_equal(MaxPool(pool().window, false), {random_values(pool().x, type(), 1)});
}

TEST_P(PoolDirections, MaximaAndTheirFirstPositionsEqualTheReference) {
  expect_equal(MaxPool(pool().window, true), {random_values(pool().x, type(), 1)});
}

TEST_P(PoolDirections, NoteTheFirstOfEqualMaxima) {
  Values x = random_values(pool().x, type(), 1);
  for (float& value : x.data) {
    value = value > 0 ? 1 : 0;
  }
  expect_equal(MaxPool(pool().window, true), {x});
}

TEST_P(PoolDirections, NaNIsAMaximumAndTheFirstIsNoted) {
  Values x = random_values(pool().x, type(), 1);
  for (std::size_t i = 3; i < x.data.size(); i += 7) {
    x.data[i] = std::numeric_limits<float>::quiet_NaN();
  }
  const test::Ran ran =
      test::run_fast(table_of_pools(), MaxPool(pool().window, true), {x}, std::get<1>(GetParam()));
  const std::vector<Values> expected = test::run_reference(MaxPool(pool().window, true), {x});
  ASSERT_EQ(ran.out[0].data.size(), expected[0].data.size());
  for (std::size_t i = 0; i < expected[0].data.size(); ++i) {
    EXPECT_EQ(std::isnan(ran.out[0].data[i]), std::isnan(expected[0].data[i])) << i;
    EXPECT_EQ(ran.out[1].data[i], expected[1].data[i]) << i;
  }
}

TEST_P(PoolDirections, GradientsOfMaximaEqualTheReference) {
  const MaxPool forward(pool().window, true);
  const std::vector<Values> y = test::run_reference(forward, {random_values(pool().x, type(), 1)});
  expect_equal(MaxPoolBackward(pool().window, pool().x),
               {random_values(output_shape(), type(), 2), y[1]});
}

TEST_P(PoolDirections, MeansEqualTheReference) {
  expect_equal(AveragePool(pool().window), {random_values(pool().x, type(), 1)});
}

TEST_P(PoolDirections, GradientsOfMeansEqualTheReference) {
  expect_equal(AveragePoolBackward(pool().window, pool().x),
               {random_values(output_shape(), type(), 2)});
}

std::string name_of_case(const testing::TestParamInfo<Parameter>& info) {
  const auto& [pool, layout, type] = info.param;
  return pool.name + "_" + std::string(name_of(layout)) + "_" + std::string(name_of(type));
}

INSTANTIATE_TEST_SUITE_P(Shapes, PoolDirections,
                         testing::Combine(testing::ValuesIn(pool_cases()),
                                          testing::Values(Layout::nchw16c, Layout::nhwc,
                                                          Layout::nchw),
                                          testing::Values(DataType::f32, DataType::bf16)),
                         name_of_case);

TEST(PoolRows, LeaveWindowsWithMorePositionsThanAByteHoldsToTheReference) {
  const KernelTable table = table_of_pools();
  const MaxPool op({.kernel_h = 16, .kernel_w = 17}, true);
  const TensorDesc x{.shape = {1, 16, 16, 17}, .layout = Layout::nhwc};
  const TensorDesc y{.shape = {1, 16, 1, 1}, .layout = Layout::nhwc};
  EXPECT_FALSE(table.describe(op, {{x}, {y, y}}).has_value());
}

}  // namespace
}  // namespace cnn::layers::cpu
