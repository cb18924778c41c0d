// Tests the kernel choice for every kind of processor on any machine, because it only describes
// kernels and runs none.

#include <array>
#include <gtest/gtest.h>
#include <optional>
#include <ostream>
#include <string>
#include <string_view>
#include <vector>

#include "layers/conv.h"
#include "layers/cpu/isa.h"
#include "layers/cpu/kernels.h"
#include "layers/cpu/rows.h"
#include "layers/elementwise.h"

namespace cnn::layers::cpu {
namespace {

struct Chosen {
  std::string_view isa;  // the largest instruction set
  std::string_view loops;
  Layout f32_layout, bf16_layout;
  bool computes_bf16;         // otherwise --precision=bf16 is refused
  bool multiplies_bf16_fast;  // otherwise products of bf16 are computed in f32

  Isa sets() const { return up_to(isa); }
};

std::ostream& operator<<(std::ostream& out, const Chosen& row) { return out << row.isa; }

constexpr std::array processors{
    // Haswell to Raptor Lake, Zen to Zen 3
    Chosen{"avx2", "avx2", Layout::nhwc, Layout::nhwc, false, false},
    // Skylake-SP, Cascade Lake, Ice Lake
    Chosen{"avx512", "avx512", Layout::nchw16c, Layout::nchw16c, true, false},
    // Cooper Lake, Zen 4
    Chosen{"avx512_bf16", "avx512_bf16", Layout::nchw16c, Layout::nchw16c, true, true},
    // Sapphire Rapids whose tiles are hidden by a hypervisor
    Chosen{"avx512_fp16", "avx512_fp16", Layout::nchw16c, Layout::nchw16c, true, false},
    // Sapphire Rapids and later
    Chosen{"amx_bf16", "avx512_fp16", Layout::nchw16c, Layout::nhwc, true, true}};

class Choice : public testing::TestWithParam<Chosen> {
 protected:
  // Returns the specs of the three directions of a 3 x 3 convolution that Winograd kernels support.
  static std::vector<std::optional<KernelSpec>> convolutions(const KernelTable& table,
                                                             DataType type) {
    ConvAttributes a;
    a.window = {
        .kernel_h = 3, .kernel_w = 3, .pad_top = 1, .pad_bottom = 1, .pad_left = 1, .pad_right = 1};
    const TensorDesc w{.shape = {64, 64, 3, 3}};
    const TensorDesc x{.shape = {2, 64, 56, 56}, .type = type, .layout = Layout::nhwc};
    return {table.describe(Conv2d(a), {.in = {x, w}, .out = {x}}),
            table.describe(Conv2dBackwardData(a, x.shape), {.in = {x, w}, .out = {x}}),
            table.describe(Conv2dBackwardWeights(a, w.shape), {.in = {x, x}, .out = {w}})};
  }

  // Only Winograd kernels report their number of operations.
  static bool is_winograd(const std::optional<KernelSpec>& spec) {
    return spec && spec->flops.has_value();
  }
};

INSTANTIATE_TEST_SUITE_P(UpTo, Choice, testing::ValuesIn(processors),
                         [](const auto& row) { return std::string(row.param.isa); });

TEST_P(Choice, TakesTheLoopsOfTheWidestVectors) {
  EXPECT_EQ(loops_for(GetParam().sets()).name, GetParam().loops);
}

TEST_P(Choice, LaysImagesAsItsConvolutionsReadThem) {
  EXPECT_EQ(preferred_layout(DataType::f32, GetParam().sets()), GetParam().f32_layout);
  EXPECT_EQ(preferred_layout(DataType::bf16, GetParam().sets()), GetParam().bf16_layout);
}

TEST_P(Choice, ComputesInBf16OnlyIfTheInstructionsSuffice) {
  EXPECT_EQ(computes_bf16(GetParam().sets()), GetParam().computes_bf16);
  EXPECT_EQ(multiplies_bf16_fast(GetParam().sets()), GetParam().multiplies_bf16_fast);
}

TEST_P(Choice, ConvolvesByWinogradInF32) {
  KernelTable table;
  add_kernels(table, {.isa = GetParam().sets()});
  for (const auto& spec : convolutions(table, DataType::f32)) {
    EXPECT_TRUE(is_winograd(spec));
  }
}

TEST_P(Choice, LeavesBf16ToOneDnnWhereThatMultipliesItFast) {
  KernelTable table;
  add_kernels(table, {.isa = GetParam().sets()});
  for (const auto& spec : convolutions(table, DataType::bf16)) {
    EXPECT_EQ(is_winograd(spec), !GetParam().multiplies_bf16_fast);
  }
}

TEST_P(Choice, CanLeaveWinogradOut) {
  KernelTable table;
  add_kernels(table, {.isa = GetParam().sets(), .winograd = false});
  for (const auto& spec : convolutions(table, DataType::f32)) {
    EXPECT_FALSE(is_winograd(spec));
  }
}

Provider provider_of_pointwise(const KernelTable& table, const Shape& x, std::int64_t filters,
                               std::int64_t stride = 1) {
  ConvAttributes a;
  a.window = {.kernel_h = 1, .kernel_w = 1, .stride_h = stride, .stride_w = stride};
  const Shape y{x[0], filters, (x[2] + stride - 1) / stride, (x[3] + stride - 1) / stride};
  const Conv2dBackwardWeights op(a, {filters, x[1], 1, 1});
  const Signature request{
      .in = {{.shape = x, .layout = Layout::nchw16c}, {.shape = y, .layout = Layout::nchw16c}},
      .out = {{.shape = op.w_shape}}};
  return table.describe(op, request).value().by;
}

TEST_P(Choice, ComputesWeightGradientsOfPointwiseConvolutionsItselfWhereThatIsFaster) {
  KernelTable table;
  add_kernels(table, {.isa = GetParam().sets()});
  // Our kernel is chosen where oneDNN's blocked layout of the gradient equals ours. That depends on
  // the instruction sets that this process may use.
  const bool avx512 = GetParam().sets().avx512 && effective_isa().avx512;
  const Provider own = avx512 ? Provider::own : Provider::onednn;
  // With AVX2 alone images are copied to blocks, which pays on medium images and with strides.
  const Provider packing = GetParam().sets().avx512 ? Provider::onednn : Provider::own;
  EXPECT_EQ(provider_of_pointwise(table, {2, 64, 56, 56}, 256), own);
  EXPECT_EQ(provider_of_pointwise(table, {32, 128, 28, 28}, 512), own);
  EXPECT_EQ(provider_of_pointwise(table, {32, 256, 14, 14}, 1024), packing) << "medium";
  EXPECT_EQ(provider_of_pointwise(table, {2, 256, 56, 56}, 512, 2), packing) << "stride";
  EXPECT_EQ(provider_of_pointwise(table, {16, 512, 7, 7}, 2048), Provider::onednn) << "small";
  EXPECT_EQ(provider_of_pointwise(table, {2, 24, 28, 28}, 64), Provider::onednn) << "half a block";
}

TEST_P(Choice, ComputesPointwiseConvolutionsThatReduceChannelsItself) {
  KernelTable table;
  add_kernels(table, {.isa = GetParam().sets()});
  const ConvAttributes a{.window = {.kernel_h = 1, .kernel_w = 1}};
  const auto provider = [&](std::int64_t from, std::int64_t to, std::int64_t side) {
    const TensorDesc x{.shape = {2, from, side, side}, .layout = Layout::nchw16c},
        y{.shape = {2, to, side, side}, .layout = Layout::nchw16c};
    const auto forward = table.describe(Conv2d(a), {{x, {.shape = {to, from, 1, 1}}}, {y}});
    const auto data =
        table.describe(Conv2dBackwardData(a, y.shape), {{x, {.shape = {from, to, 1, 1}}}, {y}});
    EXPECT_EQ(forward.value().by, data.value().by);
    return forward.value().by;
  };
  // With AVX2 alone products are the rule for all channels.
  const Provider others = GetParam().sets().avx512 ? Provider::onednn : Provider::own;
  EXPECT_EQ(provider(256, 64, 56), Provider::own);
  EXPECT_EQ(provider(512, 128, 28), Provider::own);
  EXPECT_EQ(provider(64, 256, 56), others) << "more channels";
  EXPECT_EQ(provider(512, 128, 14), others) << "small images";
}

TEST_P(Choice, ComputesPointwiseConvolutionsOfBf16ItselfWhereF32IsFaster) {
  const Isa isa = GetParam().sets();
  if (!computes_bf16(isa)) {
    GTEST_SKIP() << "no network computes in bf16 with these sets";
  }
  KernelTable table;
  add_kernels(table, {.isa = isa});
  const TensorDesc x{.shape = {2, 64, 14, 14}, .type = DataType::bf16, .layout = Layout::nchw16c};
  const TensorDesc w{.shape = {64, 64, 1, 1}};
  // A oneDNN that is limited to fewer sets may have no kernel at all.
  const auto is_own = [](const std::optional<KernelSpec>& spec) {
    return spec && spec->by == Provider::own;
  };
  const bool own = !multiplies_bf16_fast(isa);
  EXPECT_EQ(is_own(table.describe(Conv2d({}), {{x, w}, {x}})), own);
  EXPECT_EQ(is_own(table.describe(Conv2dBackwardData({}, x.shape), {{x, w}, {x}})), own);
  if (own) {  // other kernels of ours serve weight gradients where bf16 is fast
    EXPECT_TRUE(is_own(table.describe(Conv2dBackwardWeights({}, w.shape), {{x, x}, {w}})));
  }
  const TensorDesc few{.shape = {2, 16, 14, 14}, .type = DataType::bf16, .layout = x.layout};
  const TensorDesc few_w{.shape = {16, 16, 1, 1}};
  EXPECT_FALSE(is_own(table.describe(Conv2d({}), {{few, few_w}, {few}})));
}

TEST_P(Choice, ComputesFirstWeightGradientsItselfWithAvx2Alone) {
  KernelTable table;
  add_kernels(table, {.isa = GetParam().sets()});
  ConvAttributes a;
  a.window = {.kernel_h = 7, .kernel_w = 7, .stride_h = 2, .stride_w = 2};
  const TensorDesc x{.shape = {2, 3, 229, 229}, .layout = Layout::nhwc},
      y{.shape = {2, 64, 112, 112}, .layout = Layout::nhwc}, w{.shape = {64, 3, 7, 7}};
  const auto gradient = table.describe(Conv2dBackwardWeights(a, w.shape), {{x, y}, {w}});
  const auto forward = table.describe(Conv2d(a), {{x, w}, {y}});
  ASSERT_TRUE(gradient && forward);
  // The order of oneDNN's weights depends on the instruction sets that this process may use.
  const bool own = !GetParam().sets().avx512 && !effective_isa().avx512;
  EXPECT_EQ(gradient->by, own ? Provider::own : Provider::onednn);
  EXPECT_EQ(gradient->out[0], forward->in[1]) << "the update needs no conversion";
}

// All supported processors have more, but CNN_MAX_CPU_ISA may leave only these.
TEST(ChoiceBelowAvx2, HasNoOwnLoops) {
  KernelTable none, avx2;
  add_kernels(none, {.isa = Isa{}});
  add_kernels(avx2, {.isa = up_to("avx2")});
  const TensorDesc x{.shape = {4, 4}};
  EXPECT_FALSE(none.describe(Scale(2), {.in = {x}, .out = {x}}));
  EXPECT_TRUE(avx2.describe(Scale(2), {.in = {x}, .out = {x}}));
}

TEST(ChoiceHere, IsForWhatTheProcessMayUse) {
  EXPECT_EQ(KernelChoice{}.isa, effective_isa());
  EXPECT_EQ(preferred_layout(DataType::f32), preferred_layout(DataType::f32, effective_isa()));
}

}  // namespace
}  // namespace cnn::layers::cpu
