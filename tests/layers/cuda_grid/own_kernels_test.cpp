// Tests our CUDA kernels beyond the op cases: shapes that take several blocks and launches, numbers
// that cancel, and a kernel for every op.

#include "layers/cuda/own_kernels.h"

#include <algorithm>
#include <cmath>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "layers/activation.h"
#include "layers/batch_norm.h"
#include "layers/fused_norm.h"
#include "layers/lrn.h"
#include "layers/operands.h"
#include "layers/pool.h"
#include "layers/relu_mask.h"
#include "layers/sliced_norm.h"
#include "tests/layers/cases.h"
#include "tests/layers/conformance.h"
#include "tests/support/numeric.h"

namespace cnn::tests {
namespace {

using layers::described;

KernelTable own_kernels() {
  KernelTable table;
  layers::cuda::add_own_kernels(table);
  return table;
}

// Returns distinct values in [-1, 1), multiplied by `spread` and shifted by `middle`.
HostTensor values(const TensorDesc& desc, double middle, double spread, int seed) {
  HostTensor result(plain(desc));
  std::uint64_t state = static_cast<std::uint64_t>(seed) * 0x9E3779B97F4A7C15ULL;
  if (desc.type == DataType::u8) {
    for (std::uint8_t& value : result.view().as<std::uint8_t>()) {
      state = state * 6364136223846793005ULL + 1442695040888963407ULL;
      value = static_cast<std::uint8_t>(state >> 56U);
    }
    return result;
  }
  for (float& value : result.view().as<float>()) {
    state = state * 6364136223846793005ULL + 1442695040888963407ULL;
    const double unit = static_cast<double>(state >> 40U) * 0x1p-23 - 1;
    value = static_cast<float>(middle + spread * unit);
  }
  round_to(desc.type, result.view());
  return result;
}

// Runs an op by its own kernel and by its reference loops, on inputs of these descriptions.
void expect_like_reference(const Op& op, const std::vector<TensorDesc>& in, double tolerance) {
  Signature request{.in = in, .out = op.infer(in)};
  std::vector<HostTensor> inputs;
  for (std::size_t i = 0; i < in.size(); ++i) {
    const bool variance = in[i].shape.rank() == 1;  // also gamma; keeps it away from 0
    inputs.push_back(values(in[i], variance ? 1 : 0, variance ? 0.5 : 1, static_cast<int>(i) + 1));
  }
  const auto run = run_op(own_kernels(), op, request, views_of(inputs));
  ASSERT_TRUE(run) << op.name();
  const Expected expected(op, views_of(inputs), request.out);
  for (std::size_t i = 0; i < request.out.size(); ++i) {
    const auto text = difference(expected.out[i].view(), run->out[i].view(), tolerance);
    EXPECT_FALSE(text) << op.name() << " output " << i << ": " << text.value_or("");
  }
}

constexpr double half_tolerance = 2e-3;  // two units in the last place of f16

// Two threads share a byte of the mask of an f32 image; of 8 channels, a block has several lines in
// one warp.
TEST(OwnKernels, StoreAndReadMasksInEveryType) {
  const layers::BatchNormAttributes masked{
      .scale = true, .relu = true, .residual = true, .mask = true, .variables = {}};
  for (const DataType type : {DataType::f32, DataType::f16, DataType::bf16}) {
    const double tolerance = type == DataType::f32    ? 1e-5
                             : type == DataType::bf16 ? 0.02
                                                      : half_tolerance;
    for (const std::int64_t channels : {8, 24, 520}) {
      const TensorDesc x = described({3, channels, 7, 3}, type);
      const TensorDesc vector = described({channels}, DataType::f32);
      const TensorDesc mask = layers::relu_mask_of(x.shape);
      expect_like_reference(layers::BatchNorm(masked), {x, vector, vector, x}, tolerance);
      expect_like_reference(layers::BatchNormBackward(masked),
                            {x, vector, vector, vector, vector, x, mask}, tolerance);
      expect_like_reference(layers::BatchNormBackward(masked, true),
                            {x, vector, vector, vector, vector, x, x, mask}, tolerance);
    }
  }
}

TEST(OwnKernels, SpreadManyChannelsOverBlocks) {
  const TensorDesc x = described({3, 520, 3, 3}, DataType::f16);
  const TensorDesc vector = described({520}, DataType::f32);
  const layers::BatchNormAttributes relu{.scale = true, .relu = true, .variables = {}};
  const layers::BatchNormAttributes joined{
      .scale = true, .relu = true, .residual = true, .variables = {}};
  expect_like_reference(layers::BatchNorm(joined), {x, vector, vector, x}, half_tolerance);
  expect_like_reference(layers::BatchNormBackward(relu), {x, vector, vector, vector, vector, x},
                        half_tolerance);
  expect_like_reference(layers::BatchNormBackward(joined),
                        {x, vector, vector, vector, vector, x, x}, half_tolerance);
  expect_like_reference(layers::BatchNormBackward(relu, true),
                        {x, vector, vector, vector, vector, x, x}, half_tolerance);
  expect_like_reference(layers::BatchNormBackward(joined, true),
                        {x, vector, vector, vector, vector, x, x, x}, half_tolerance);
  expect_like_reference(layers::SpatialMean(), {x}, half_tolerance);
  expect_like_reference(layers::Lrn({}), {x}, half_tolerance);
}

// One launch merges 160 slices; the next one goes on from the workspace. The slices differ in size.
TEST(OwnKernels, MergeTheMomentsOfMoreSlicesThanOneLaunchTakes) {
  std::vector<double> counts;
  for (int slice = 0; slice < 350; ++slice) {
    counts.push_back(49 * (1 + slice % 2));
  }
  const std::vector<TensorDesc> vectors(2 * counts.size(), described({130}, DataType::f32));
  expect_like_reference(layers::MergeMoments(counts), vectors, 1e-6);
}

// Three of the four chunks of the 385 rows are full; the last one has fewer rows.
TEST(OwnKernels, EndWithTheLastRow) {
  const TensorDesc x = described({5, 64, 7, 11}, DataType::f16);
  const TensorDesc vector = described({64}, DataType::f32);
  const layers::BatchNormAttributes a{.scale = true, .relu = true, .variables = {}};
  expect_like_reference(layers::BatchNorm(a), {x, vector, vector}, half_tolerance);
  expect_like_reference(layers::BatchNormBackward(a), {x, vector, vector, vector, vector, x},
                        half_tolerance);
  expect_like_reference(layers::BatchNormBackward(a, true),
                        {x, vector, vector, vector, vector, x, x}, half_tolerance);
}

TEST(OwnKernels, TakeChannelsThatFillNoVector) {
  for (const std::int64_t channels : {1, 3, 12, 36, 50}) {
    const TensorDesc x = described({2, channels, 9, 8}, DataType::bf16);
    const TensorDesc vector = described({channels}, DataType::f32);
    const layers::BatchNormAttributes a{.scale = true, .relu = true, .variables = {}};
    expect_like_reference(layers::BatchNorm(a), {x, vector, vector}, 0.01);
    expect_like_reference(layers::SpatialMean(), {x}, 0.01);
    const layers::Window window{.kernel_h = 3, .kernel_w = 3, .stride_h = 2, .stride_w = 2};
    expect_like_reference(layers::MaxPool(window, true), {x}, 0.01);
    expect_like_reference(layers::AveragePool(window), {x}, 0.01);
  }
}

TEST(OwnKernels, FinishTheNormsOfFusedConvolutionsInManyBlocks) {
  for (const std::int64_t channels : {520, 36, 3}) {
    const TensorDesc x = described({3, channels, 9, 8}, DataType::f16);
    const TensorDesc vector = described({channels}, DataType::f32);
    using layers::ScaleBias;
    expect_like_reference(layers::ChannelSums(), {x}, 1e-5);
    expect_like_reference(layers::FinishStatistics(1.5, 1e-5, DataType::f16),
                          std::vector<TensorDesc>(4, vector), half_tolerance);
    expect_like_reference(ScaleBias(true, ScaleBias::Residual::none), {x, vector, vector},
                          half_tolerance);
    expect_like_reference(ScaleBias(true, ScaleBias::Residual::normalised),
                          {x, vector, vector, x, vector, vector}, half_tolerance);
    expect_like_reference(layers::NormBackwardEnd(), {x, x, vector, vector, vector, vector, vector},
                          half_tolerance);
  }
}

// Kernels that use the rounded slope and offset must agree with those that use mean and deviation.
TEST(OwnKernels, FinishStatisticsWithTheValuesOfSlopesAndOffsetsAfterRounding) {
  for (const DataType type : {DataType::f16, DataType::bf16}) {
    const std::vector<TensorDesc> vectors(4, described({200}, DataType::f32));
    const layers::FinishStatistics op(100, 1e-3, type);
    std::vector<HostTensor> in;
    for (unsigned i = 0; i < vectors.size(); ++i) {
      in.push_back(values(vectors[i], i == 1 ? 300.0F : 1.0F, 0.7F, i + 1));
    }
    const auto run = run_op(own_kernels(), op, {vectors, op.infer(vectors)}, views_of(in));
    ASSERT_TRUE(run);
    ASSERT_EQ(run->out.size(), 7U);
    for (const std::size_t output : {3, 4}) {
      EXPECT_EQ(run->signature.out[output].type, type);
      EXPECT_TRUE(std::ranges::equal(run->out[output].view().as<float>(),
                                     run->out[output + 2].view().as<float>()))
          << name_of(type) << " output " << output;
    }
  }
}

TEST(OwnKernels, FinishNoNegativeVariance) {
  const TensorDesc vector = described({1}, DataType::f32);
  const layers::FinishStatistics op(3, 0.25, DataType::f32);
  // The square of the mean is 1 and the mean of squares is one rounding less, so r is 1 /
  // sqrt(0.25) = 2.
  std::vector<HostTensor> in;
  for (const float value : {3.0F, 2.9999998F, 0.5F, 7.0F}) {
    in.push_back(values(vector, value, 0, 1));
  }
  const auto run =
      run_op(own_kernels(), op,
             {std::vector<TensorDesc>(4, vector), op.infer(std::vector<TensorDesc>(4, vector))},
             views_of(in));
  ASSERT_TRUE(run);
  const std::vector<float> expected{1, 0, 2, 1, 6};
  for (std::size_t i = 0; i < expected.size(); ++i) {
    EXPECT_EQ(run->out[i].view().as<float>()[0], expected[i]) << i;
  }
}

// In f32, x^2 loses any deviation that is 10,000 times smaller than the mean.
TEST(OwnKernels, FindTheVarianceBesideALargeMean) {
  const TensorDesc x = described({4, 8, 12, 12}, DataType::f32);
  const layers::BatchNorm op({.variables = {}});
  std::vector<HostTensor> in;
  in.push_back(values(x, 10'000, 1, 1));
  in.push_back(values(described({8}, DataType::f32), 0, 1, 2));
  const auto run =
      run_op(own_kernels(), op, {{x, in[1].desc()}, op.infer({{x, in[1].desc()}})}, views_of(in));
  ASSERT_TRUE(run);
  const Expected expected(op, views_of(in), run->signature.out);
  for (std::size_t c = 0; c < 8; ++c) {
    const float variance = expected.out[2].view().as<float>()[c];
    EXPECT_NEAR(run->out[2].view().as<float>()[c], variance, 1e-5 * variance) << "channel " << c;
    EXPECT_NEAR(variance, 1.0 / 3, 0.05);
  }
}

TEST(OwnKernels, AdvanceTheAveragesOfMoreLayersThanOneLaunchTakes) {
  std::vector<layers::MovingAverage::Layer> layers;
  std::vector<TensorDesc> in;
  for (int i = 0; i < 150; ++i) {
    layers.push_back({.decay = 0.5 + i * 0.003, .count = 10.0 + i});
    in.insert(in.end(), 4, described({i % 7 * 40 + 1}, DataType::f32));
  }
  const layers::MovingAverage op(layers);
  std::vector<HostTensor> before;
  for (std::size_t i = 0; i < in.size(); ++i) {
    before.push_back(values(in[i], 1, 0.5, static_cast<int>(i)));
  }
  const auto run = run_op(own_kernels(), op, {in, {}}, views_of(before));
  ASSERT_TRUE(run);
  const Expected expected(op, views_of(before), {});
  for (std::size_t i = 0; i < in.size(); ++i) {
    EXPECT_FALSE(difference(expected.after[i].view(), run->after[i].view(), 1e-6)) << i;
  }
}

// These ops make and read views of a concatenated image, so their kernels must accept a pitch.
TEST(OwnKernels, TakeImagesWithOtherChannelsBetweenPixels) {
  const KernelTable table = own_kernels();
  std::set<std::string> pitched;
  for (const DataType compute : {DataType::f32, DataType::f16}) {
    for (const Case& row : all_cases()) {
      if (row.weight == Weight::heavy) {
        continue;
      }
      const BuiltCase built = build(row, compute);
      for (const Node& node : built.graph->nodes()) {
        if (spread_out(table, *node.op, request(*built.graph, node, Layout::nhwc))) {
          pitched.insert(std::string(node.op->name()));
        }
      }
    }
  }
  EXPECT_THAT(pitched,
              testing::ElementsAre("average_pool", "average_pool_backward", "batch_norm",
                                   "batch_norm_backward", "batch_norm_gradient_sums",
                                   "batch_norm_inference", "batch_norm_input_gradient", "concat",
                                   "concat_rows", "max_pool", "max_pool_backward", "relu_backward",
                                   "scale_bias", "slice_rows", "slice_rows_backward", "split",
                                   "subsample", "subsample_backward"));
}

// Either operand may be such a view, with any number of channels.
TEST(OwnKernels, LeaveAloneWhatLiesBetweenPixels) {
  for (const std::int64_t channels : {24, 12, 3}) {
    const TensorDesc x{.shape = {2, channels, 5, 4}, .type = DataType::f16, .layout = Layout::nhwc};
    TensorDesc part = x;
    part.pitch = 48;
    const layers::ReluBackward op;
    for (const auto& [dy, y] : {std::pair(part, x), std::pair(x, part), std::pair(part, part)}) {
      std::vector<HostTensor> in;
      in.push_back(values(dy, 0, 1, 1));
      in.push_back(values(y, 0, 1, 2));
      const auto run = run_op(own_kernels(), op, {{dy, y}, {x}}, views_of(in));
      ASSERT_TRUE(run);
      EXPECT_EQ(run->signature.in, (std::vector{dy, y}));
      const Expected expected(op, views_of(in), std::vector{x});
      EXPECT_FALSE(difference(expected.out[0].view(), run->out[0].view(), 0)) << channels;
    }
  }
}

TEST(OwnKernels, TakeNoPitchThatLeavesPixelsUnaligned) {
  const TensorDesc x{.shape = {2, 8, 5, 4}, .type = DataType::f16, .layout = Layout::nhwc};
  TensorDesc part = x;
  part.pitch = 12;
  const auto spec = own_kernels().describe(layers::ReluBackward(), {{part, part}, {x}});
  ASSERT_TRUE(spec);
  EXPECT_EQ(spec->in, (std::vector{x, x}));
}

// Only ops of the libraries may lack a kernel, and gate masks, which the output then replaces.
TEST(OwnKernels, ServeEveryOpButConvolutionsAndProducts) {
  const KernelTable table = own_kernels();
  std::set<std::string> missing;
  for (const DataType compute : {DataType::f32, DataType::bf16, DataType::f16}) {
    for (const Case& row : all_cases()) {
      if (row.weight == Weight::heavy || row.name.ends_with("_mask")) {
        continue;
      }
      const BuiltCase built = build(row, compute);
      for (const Node& node : built.graph->nodes()) {
        if (!table.describe(*node.op, request(*built.graph, node, Layout::nhwc))) {
          missing.insert(std::string(node.op->name()));
        }
      }
    }
  }
  const std::set<std::string> by_libraries{"conv",
                                           "conv_backward_data",
                                           "conv_backward_data_norm",
                                           "conv_backward_weights",
                                           "dense",
                                           "dense_backward_data",
                                           "dense_backward_weights",
                                           "fused_conv",
                                           "fused_conv_backward_weights"};
  EXPECT_THAT(missing, testing::IsSubsetOf(by_libraries));
}

}  // namespace
}  // namespace cnn::tests
