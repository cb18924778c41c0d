#include "layers/lrn.h"

#include <gtest/gtest.h>
#include <string>
#include <tuple>
#include <vector>

#include "layers/cpu/rows.h"
#include "tests/layers/cpu/run_op.h"

namespace cnn::layers::cpu {
namespace {

using test::random_values;
using test::Values;

using Parameter = std::tuple<Shape, Layout, DataType>;

class LrnDirections : public testing::TestWithParam<Parameter> {
 protected:
  Values image(unsigned seed) const {
    return random_values(std::get<0>(GetParam()), std::get<2>(GetParam()), seed);
  }

  void expect_equal(const Op& op, const std::vector<Values>& in) const {
    KernelTable table;
    add_lrn_rows(table);
    add_lrn_within_rows(table);
    add_convert_rows(table);
    const test::Ran ran = test::run_fast(table, op, in, std::get<1>(GetParam()));
    const double tolerance = std::get<2>(GetParam()) == DataType::bf16 ? 1.0 / 256 : 1e-6;
    EXPECT_LE(test::distance(ran.out[0], test::run_reference(op, in)[0]), tolerance);
  }
};

TEST_P(LrnDirections, ForwardEqualsTheReference) {
  expect_equal(Lrn({.radius = 4, .alpha = 0.3}), {image(1)});
}

TEST_P(LrnDirections, ForwardWithAnotherPowerEqualsTheReference) {
  expect_equal(Lrn({.radius = 2, .bias = 2, .alpha = 0.5, .beta = 0.6}), {image(1)});
}

TEST_P(LrnDirections, BackwardEqualsTheReference) {
  expect_equal(LrnBackward({.radius = 4, .alpha = 0.3}), {image(1), image(2)});
}

TEST_P(LrnDirections, ForwardWithinChannelsEqualsTheReference) {
  expect_equal(WithinLrn({.radius = 1, .alpha = 0.3}), {image(1)});
}

TEST_P(LrnDirections, BackwardWithinChannelsEqualsTheReference) {
  expect_equal(WithinLrnBackward({.radius = 1, .alpha = 0.3}), {image(1), image(2)});
  expect_equal(WithinLrnBackward({.radius = 3, .bias = 2, .alpha = 0.1, .beta = 0.6}),
               {image(1), image(2)});
}

std::string name_of_case(const testing::TestParamInfo<Parameter>& info) {
  const auto& [shape, layout, type] = info.param;
  return std::to_string(shape[1]) + "_" + std::string(name_of(layout)) + "_" +
         std::string(name_of(type));
}

INSTANTIATE_TEST_SUITE_P(
    Shapes, LrnDirections,
    testing::Combine(testing::Values(Shape{2, 64, 8, 8}, Shape{70, 17, 3, 5}, Shape{1, 3, 1, 1}),
                     testing::Values(Layout::nchw, Layout::nhwc, Layout::nchw16c),
                     testing::Values(DataType::f32, DataType::bf16)),
    name_of_case);

}  // namespace
}  // namespace cnn::layers::cpu
