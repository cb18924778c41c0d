#include "layers/dense.h"

#include <gtest/gtest.h>
#include <string>
#include <tuple>
#include <vector>

#include "layers/cpu/rows.h"
#include "tests/layers/cpu/run_op.h"

namespace cnn::layers::cpu {
namespace {

using test::distance;
using test::random_values;
using test::Values;

struct Sizes {
  std::int64_t rows, inputs, outputs;
};

using Parameter = std::tuple<Sizes, DataType>;

class DenseDirections : public testing::TestWithParam<Parameter> {
 protected:
  Sizes sizes() const { return std::get<0>(GetParam()); }
  DataType type() const { return std::get<1>(GetParam()); }

  Values x() const { return random_values({sizes().rows, sizes().inputs}, type(), 1); }
  Values dy() const { return random_values({sizes().rows, sizes().outputs}, type(), 2); }
  Values weights() const {
    Values w = random_values({sizes().inputs, sizes().outputs}, type(), 3);
    w.desc.type = DataType::f32;
    return w;
  }

  void expect_equal(const Op& op, const std::vector<Values>& in) const {
    KernelTable table;
    add_dense_rows(table);
    add_convert_rows(table);
    const test::Ran ran = test::run_fast(table, op, in, Layout::nchw);
    const std::vector<Values> expected = test::run_reference(op, in);
    for (std::size_t i = 0; i < expected.size(); ++i) {
      EXPECT_LE(distance(ran.out[i], expected[i]), type() == DataType::bf16 ? 1.0 / 128 : 1e-5)
          << "output " << i << " of " << to_string(ran.signature);
    }
  }
};

TEST_P(DenseDirections, ForwardEqualsTheReference) {
  expect_equal(Dense({.bias = false}), {x(), weights()});
}

TEST_P(DenseDirections, ForwardWithBiasAndReluEqualsTheReference) {
  expect_equal(Dense({.bias = true, .relu = true}),
               {x(), weights(), random_values({sizes().outputs}, DataType::f32, 4)});
}

TEST_P(DenseDirections, BackwardDataEqualsTheReference) {
  expect_equal(DenseBackwardData(), {dy(), weights()});
}

TEST_P(DenseDirections, BackwardWeightsAndBiasEqualTheReference) {
  expect_equal(DenseBackwardWeights({.bias = true}), {x(), dy()});
}

TEST_P(DenseDirections, BackwardWeightsWithoutBiasEqualTheReference) {
  expect_equal(DenseBackwardWeights({.bias = false}), {x(), dy()});
}

std::string name_of_case(const testing::TestParamInfo<Parameter>& info) {
  const auto& [s, type] = info.param;
  return std::to_string(s.rows) + "x" + std::to_string(s.inputs) + "x" + std::to_string(s.outputs) +
         "_" + std::string(name_of(type));
}

INSTANTIATE_TEST_SUITE_P(Sizes, DenseDirections,
                         testing::Combine(testing::Values(Sizes{1, 1, 1}, Sizes{3, 5, 7},
                                                          Sizes{8, 64, 1001}, Sizes{32, 256, 48},
                                                          Sizes{5, 384, 192}, Sizes{64, 100, 11}),
                                          testing::Values(DataType::f32, DataType::bf16)),
                         name_of_case);

}  // namespace
}  // namespace cnn::layers::cpu
