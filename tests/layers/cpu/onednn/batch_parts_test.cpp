#include "layers/cpu/onednn/batch_parts.h"

#include <cstring>
#include <gtest/gtest.h>
#include <utility>
#include <vector>

#include "layers/conv.h"
#include "layers/cpu/parallel.h"
#include "layers/cpu/rows.h"
#include "tests/layers/cpu/run_op.h"

namespace cnn::layers::cpu {
namespace {

using test::random_values;
using test::Values;

constexpr std::int64_t channels = 64, side = 64;
constexpr std::size_t wide_pixels = std::size_t{side} * side * sizeof(float);
const Shape weights{channels, channels, 1, 1};

// Images of 1 MiB in f32 each, of which a part has as many as there are threads.
Shape batch_of_two_parts() { return {std::int64_t{2} * team_size(), channels, side, side}; }

// Fixture with oneDNN's convolutions for a processor that multiplies f32 faster than bf16.
class BatchParts : public testing::Test {
 protected:
  void SetUp() override {
    if (!effective_isa().avx512) {
      GTEST_SKIP() << "16-bit images need AVX-512";
    }
    std::vector<ConvCandidateRows> kinds = library_conv_candidates(up_to("avx512"));
    ASSERT_EQ(kinds.at(0).name, "onednn");
    table = std::move(kinds[0].table);
    add_convert_rows(table);
  }

  // Returns the workspace of a convolution of bf16 images in blocks.
  std::size_t workspace(const Op& op, Signature request) const {
    for (auto* side_of : {&request.in, &request.out}) {
      for (TensorDesc& desc : *side_of) {
        desc.layout = desc.type == DataType::bf16 ? Layout::nchw16c : Layout::nchw;
      }
    }
    return table.describe(op, request).value().workspace;
  }

  void expect_equal(const Op& op, const std::vector<Values>& in, double tolerance) const {
    const test::Ran ran = test::run_fast(table, op, in, Layout::nchw16c);
    const std::vector<Values> expected = test::run_reference(op, in);
    ASSERT_EQ(ran.out.size(), expected.size());
    for (std::size_t i = 0; i < expected.size(); ++i) {
      EXPECT_LE(test::distance(ran.out[i], expected[i]), tolerance) << "output " << i;
    }
  }

  KernelTable table;
  Shape batch = batch_of_two_parts();
  TensorDesc images{.shape = batch, .type = DataType::bf16};
  TensorDesc filters{.shape = weights};
};

Values rounded_weights() {
  Values w = random_values(weights, DataType::bf16, 2);
  w.desc.type = DataType::f32;
  return w;
}

TEST_F(BatchParts, WideCopiesAreThoseOfAPart) {
  const std::size_t of_batch = 2 * static_cast<std::size_t>(batch[0]) * channels * wide_pixels;
  EXPECT_LT(workspace(Conv2d({}), {{images, filters}, {images}}), of_batch * 3 / 4);
  EXPECT_LT(workspace(Conv2dBackwardData({}, batch), {{images, filters}, {images}}),
            of_batch * 3 / 4);
  EXPECT_LT(workspace(Conv2dBackwardWeights({}, weights), {{images, images}, {filters}}),
            of_batch * 3 / 4);
}

TEST_F(BatchParts, ASmallBatchIsOnePart) {
  images.shape = {2, channels, 8, 8};
  const std::size_t of_batch = 2 * images.bytes() * 2;
  EXPECT_GE(workspace(Conv2d({}), {{images, filters}, {images}}), of_batch);
}

TEST_F(BatchParts, ForwardWithTheWholeEpilogueEqualsTheReference) {
  const ConvAttributes a{.bias = true, .residual = true, .relu = true};
  expect_equal(
      Conv2d(a),
      {random_values(batch, DataType::bf16, 1), rounded_weights(),
       random_values({channels}, DataType::f32, 3), random_values(batch, DataType::bf16, 4)},
      1.0 / 128);
}

TEST_F(BatchParts, DataGradientEqualsTheReference) {
  expect_equal(Conv2dBackwardData({}, batch),
               {random_values(batch, DataType::bf16, 5), rounded_weights()}, 1.0 / 128);
}

TEST_F(BatchParts, GradientsOfWeightsAndBiasAreSumsOverTheParts) {
  const ConvAttributes a{.bias = true};
  expect_equal(Conv2dBackwardWeights(a, weights),
               {random_values(batch, DataType::bf16, 1), random_values(batch, DataType::bf16, 5)},
               1e-4);
}

// The result of an image does not depend on the part that it is in.
TEST_F(BatchParts, EqualImagesGiveEqualBits) {
  Values x = random_values({1, channels, side, side}, DataType::bf16, 1);
  const std::vector<float> one = x.data;
  x.desc.shape = batch;
  for (std::int64_t i = 1; i < batch[0]; ++i) {
    x.data.insert(x.data.end(), one.begin(), one.end());
  }
  const Values y =
      test::run_fast(table, Conv2d({}), {x, rounded_weights()}, Layout::nchw16c).out.at(0);
  for (std::size_t i = 1; i < static_cast<std::size_t>(batch[0]); ++i) {
    ASSERT_EQ(std::memcmp(y.data.data(), y.data.data() + i * one.size(), one.size() * 4), 0)
        << "image " << i;
  }
}

}  // namespace
}  // namespace cnn::layers::cpu
