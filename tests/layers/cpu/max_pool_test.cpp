#include "layers/cpu/max_pool.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <gtest/gtest.h>
#include <limits>
#include <vector>

#include "layers/pool.h"
#include "tests/support/op_runner.h"

namespace cnn::tests {
namespace {

using layers::MaxPool;

class MaxPoolKernel : public testing::Test {
 protected:
  void SetUp() override {
    if (!isa.avx2) {
      GTEST_SKIP() << "our loops need AVX2";
    }
    layers::cpu::add_max_pool_rows(table, isa);
  }

  bool serves(const layers::Window& window, bool with_indices, DataType type) const {
    const TensorDesc x{.shape = {1, 16, 32, 32}, .type = type, .layout = Layout::nhwc};
    Signature request{.in = {x}, .out = MaxPool(window, false).infer(std::vector{x})};
    if (with_indices) {
      request.out.push_back(request.out.front());
      request.out.back().type = DataType::u8;
    }
    return table.describe(MaxPool(window, with_indices), request).has_value();
  }

  const layers::cpu::Isa isa = layers::cpu::effective_isa();
  KernelTable table;
};

struct Maxima {
  std::vector<float> values;
  std::vector<int> indices;
};

// Returns the maxima of an image of one channel in windows of 2 x 2 without a stride.
Maxima maxima(const KernelTable& table, const std::vector<float>& image, std::int64_t side) {
  const MaxPool op({.kernel_h = 2, .kernel_w = 2}, /*with_indices=*/true);
  const TensorDesc x{.shape = {1, 1, side, side}, .layout = Layout::nhwc};
  Signature signature{.in = {x}, .out = op.infer(std::vector{x})};
  for (TensorDesc& desc : signature.out) {
    desc.layout = Layout::nhwc;
  }
  HostTensor in(x), values(signature.out[0]), indices(signature.out[1]);
  std::copy(image.begin(), image.end(), in.view().as<float>().begin());
  ImmediateStream stream;
  table.make(op, signature)
      ->run(stream, {.in = {in.view()}, .out = {values.view(), indices.view()}, .workspace = {}});
  const auto found = values.view().as<float>();
  const auto places = indices.view().as<std::uint8_t>();
  return {{found.begin(), found.end()}, {places.begin(), places.end()}};
}

TEST_F(MaxPoolKernel, NumbersThePlacesOfAWindowRowByRow) {
  const Maxima found = maxima(table,
                              {1, 5, 2,  //
                               3, 4, 6,  //
                               9, 8, 7},
                              3);
  EXPECT_EQ(found.values, (std::vector<float>{5, 6, 9, 8}));
  EXPECT_EQ(found.indices, (std::vector<int>{1, 3, 2, 2}));
}

TEST_F(MaxPoolKernel, NotesTheFirstOfEqualMaxima) {
  EXPECT_EQ(maxima(table, {7, 7, 7, 7}, 2).indices, (std::vector<int>{0}));
}

TEST_F(MaxPoolKernel, LetsANanWin) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const Maxima found = maxima(table, {1, 2, nan, 3}, 2);
  EXPECT_TRUE(std::isnan(found.values.front()));
  EXPECT_EQ(found.indices, (std::vector<int>{2}));
}

TEST_F(MaxPoolKernel, ServesTypesWithLoopsAndWindowsWhosePlacesFitAByte) {
  const layers::Window small{.kernel_h = 16, .kernel_w = 16}, large{.kernel_h = 16, .kernel_w = 17};
  EXPECT_TRUE(serves(small, true, DataType::f32));
  EXPECT_TRUE(serves(small, true, DataType::bf16));
  EXPECT_FALSE(serves(large, true, DataType::f32));
  EXPECT_TRUE(serves(large, false, DataType::f32));
  EXPECT_FALSE(serves(small, true, DataType::f16));
}

}  // namespace
}  // namespace cnn::tests
