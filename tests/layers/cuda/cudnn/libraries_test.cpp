#include "layers/cuda/cudnn/libraries.h"

#include <cuda_runtime_api.h>
#include <dlfcn.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <string>

#include "layers/conv.h"
#include "layers/cuda/conv_graph.h"
#include "layers/cuda/cudnn/kernels.h"
#include "layers/dense.h"
#include "runtime/error.h"
#include "tests/layers/cuda/cudnn/h200.h"
#include "tests/support/files.h"

namespace cnn::tests {
namespace {

using layers::cuda::Libraries;

KernelTable table_for(const layers::cuda::LibraryOptions& options = {}) {
  KernelTable table;
  layers::cuda::add_kernels(table, std::make_shared<Libraries>(h200(), options));
  return table;
}

TensorDesc desc(Shape shape, DataType type, Layout layout = Layout::nhwc) {
  return {.shape = shape, .type = type, .layout = layout};
}

constexpr layers::Window stem{.kernel_h = 7,
                              .kernel_w = 7,
                              .stride_h = 2,
                              .stride_w = 2,
                              .pad_top = 3,
                              .pad_bottom = 3,
                              .pad_left = 3,
                              .pad_right = 3};
constexpr layers::Window point{};

TEST(Libraries, DescribeAConvolutionInTheTypeOfItsImages) {
  const layers::Conv2d op({.window = point, .bias = true, .relu = true});
  const auto spec =
      table_for().describe(op, {.in = {desc({32, 64, 56, 56}, DataType::f16, Layout::nchw),
                                       desc({256, 64, 1, 1}, DataType::f32, Layout::nchw),
                                       desc({256}, DataType::f32, Layout::nchw)},
                                .out = {desc({32, 256, 56, 56}, DataType::f16, Layout::nchw)}});
  ASSERT_TRUE(spec);
  EXPECT_EQ(spec->in[0], desc({32, 64, 56, 56}, DataType::f16));
  EXPECT_EQ(spec->in[1], desc({256, 64, 1, 1}, DataType::f16));
  EXPECT_EQ(spec->in[2], desc({256}, DataType::f16, Layout::nchw));
  EXPECT_EQ(spec->out[0], desc({32, 256, 56, 56}, DataType::f16));
}

// Without a reference of our own cuDNN would load and relocate it again for each engine.
TEST(Libraries, KeepTheRuntimeCompilerLoaded) {
  const std::string file = "libnvrtc.so." + std::to_string(CUDART_VERSION / 1000);
  void* const found = ::dlopen(file.c_str(), RTLD_LAZY);
  if (found == nullptr) {
    GTEST_SKIP() << file << " is not in the search path of libraries";
  }
  static_cast<void>(::dlclose(found));
  const Libraries described(h200(), {});
  void* const kept = ::dlopen(file.c_str(), RTLD_LAZY | RTLD_NOLOAD);
  ASSERT_NE(kept, nullptr);
  static_cast<void>(::dlclose(kept));
}

// The workspace holds 32 x 224 x 224 pixels and 64 x 7 x 7 taps, each of four channels of two
// bytes.
TEST(Libraries, PlanWorkspaceForAnImageOfFourChannels) {
  const layers::Conv2d op({.window = stem});
  const auto spec = table_for().describe(
      op, {.in = {desc({32, 3, 224, 224}, DataType::f16), desc({64, 3, 7, 7}, DataType::f32)},
           .out = {desc({32, 64, 112, 112}, DataType::f16)}});
  ASSERT_TRUE(spec);
  constexpr std::size_t image = 32 * 224 * 224 * 4 * 2;
  constexpr std::size_t weights = 64 * 7 * 7 * 4 * 2;
  EXPECT_GE(spec->workspace, image + weights);
  EXPECT_LT(spec->workspace, image + weights + (1U << 20U));
}

TEST(Libraries, GiveWeightGradientsInF32) {
  const layers::Conv2dBackwardWeights op({.window = point, .bias = true}, {256, 64, 1, 1});
  const auto spec = table_for().describe(
      op,
      {.in = {desc({32, 64, 56, 56}, DataType::bf16), desc({32, 256, 56, 56}, DataType::bf16)},
       .out = {desc({256, 64, 1, 1}, DataType::f32), desc({256}, DataType::f32, Layout::nchw)}});
  ASSERT_TRUE(spec);
  EXPECT_EQ(spec->out[0], desc({256, 64, 1, 1}, DataType::f32));
  EXPECT_EQ(spec->out[1], desc({256}, DataType::f32, Layout::nchw));
  EXPECT_GE(spec->workspace, std::size_t{256 * 64 * 2});
}

TEST(Libraries, DescribeWhatTheyDescribedAlike) {
  const layers::Conv2d op({.window = stem, .bias = true});
  const KernelTable table = table_for();
  const auto first = table.describe(
      op, {.in = {desc({8, 3, 224, 224}, DataType::f16), desc({64, 3, 7, 7}, DataType::f32),
                  desc({64}, DataType::f32, Layout::nchw)},
           .out = {desc({8, 64, 112, 112}, DataType::f16)}});
  ASSERT_TRUE(first);
  const auto second = table.describe(op, {.in = first->in, .out = first->out});
  ASSERT_TRUE(second);
  EXPECT_EQ(second->in, first->in);
  EXPECT_EQ(second->out, first->out);
  EXPECT_EQ(second->workspace, first->workspace);
}

TEST(Libraries, LeaveAResidualToOurOwnEpilogue) {
  const layers::Conv2d op({.window = point, .bias = true, .residual = true, .relu = true});
  const auto spec = table_for().describe(
      op, {.in = {desc({32, 64, 56, 56}, DataType::f16), desc({256, 64, 1, 1}, DataType::f32),
                  desc({256}, DataType::f32, Layout::nchw), desc({32, 256, 56, 56}, DataType::f16)},
           .out = {desc({32, 256, 56, 56}, DataType::f16)}});
  ASSERT_TRUE(spec);
  EXPECT_EQ(spec->in[2].type, DataType::f32);
  EXPECT_EQ(spec->in[3], desc({32, 256, 56, 56}, DataType::f16));
}

TEST(Libraries, DescribeProducts) {
  const layers::DenseBackwardWeights op({.bias = true});
  const auto spec =
      table_for().describe(op, {.in = {desc({32, 2048}, DataType::f16, Layout::nchw),
                                       desc({32, 1001}, DataType::f16, Layout::nchw)},
                                .out = {desc({2048, 1001}, DataType::f32, Layout::nchw),
                                        desc({1001}, DataType::f32, Layout::nchw)}});
  ASSERT_TRUE(spec);
  EXPECT_EQ(spec->out[0].type, DataType::f32);
  EXPECT_GE(spec->workspace, layers::cuda::product_workspace + 1001 * sizeof(float));
}

TEST(Libraries, RememberTheirChoices) {
  Libraries libraries(h200(), {});
  int built = 0;
  const auto build = [&] {
    ++built;
    return operations_of(layers::cuda::ConvGraph{.type = DataType::f16,
                                                 .x = {8, 64, 8, 8},
                                                 .w = {64, 64, 1, 1},
                                                 .y = {8, 64, 8, 8},
                                                 .window = point});
  };
  const auto first = libraries.choose("key", build);
  EXPECT_TRUE(first);
  EXPECT_EQ(libraries.choose("key", build), first);
  EXPECT_EQ(built, 1);
  EXPECT_EQ(libraries.counts().guessed, 1U);
}

TEST(Libraries, LeaveAnEngineOfTheCacheThatCannotBeBuilt) {
  const layers::cuda::ConvGraph graph{.type = DataType::f16,
                                      .x = {8, 64, 8, 8},
                                      .w = {64, 64, 1, 1},
                                      .y = {8, 64, 8, 8},
                                      .window = point};
  const auto build = [&] { return operations_of(graph); };
  const TemporaryFolder folder;
  layers::cuda::PlanCache cache(folder / "plans", {.device = "H200", .cudnn_version = 1}, true);
  layers::cuda::Choice gone;
  gone.engine = 99999;
  cache.store("key", {.choice = gone, .seconds = 1});
  Libraries libraries(h200(), {}, std::move(cache));
  const auto choice = libraries.choose("key", build);
  ASSERT_TRUE(choice);
  EXPECT_NE(choice->engine, gone.engine);
  EXPECT_EQ(libraries.counts().cached, 0U);
  EXPECT_EQ(libraries.counts().guessed, 1U);
  EXPECT_THAT(libraries.take_notes(),
              testing::ElementsAre(testing::AllOf(
                  testing::HasSubstr("plan cache: engine 99999 knobs - for key is not used"),
                  testing::HasSubstr("cuDNN has no engine 99999"))));
  EXPECT_THAT(libraries.take_notes(), testing::IsEmpty());
}

TEST(Libraries, RunNothingWithoutADevice) {
  const layers::Dense op({.bias = false});
  const Signature signature{.in = {desc({8, 16}, DataType::f16, Layout::nchw),
                                   desc({16, 8}, DataType::f16, Layout::nchw)},
                            .out = {desc({8, 8}, DataType::f16, Layout::nchw)}};
  EXPECT_THROW(table_for().make(op, signature), Error);
}

TEST(Libraries, TuneNothingWithoutADevice) {
  EXPECT_THROW(Libraries(h200(), {.tune = true}), Error);
}

TEST(Libraries, NameTheirVersions) {
  const auto versions = layers::cuda::library_versions();
  ASSERT_EQ(versions.size(), 2U);
  EXPECT_EQ(versions[0].name, "cuDNN");
  EXPECT_THAT(versions[0].version, testing::StartsWith("9."));
  EXPECT_EQ(versions[1].name, "cuBLAS");
}

}  // namespace
}  // namespace cnn::tests
