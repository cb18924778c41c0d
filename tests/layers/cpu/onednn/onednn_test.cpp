#include "layers/cpu/onednn/onednn.h"

#include <cstddef>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <memory>
#include <optional>
#include <string_view>

#include "layers/activation.h"
#include "tests/support/error_of.h"

namespace cnn::layers::cpu {
namespace {

using dnnl::memory;
using testing::HasSubstr;

TEST(OnednnType, IsTheTypeOfTheSameName) {
  EXPECT_EQ(onednn_type(DataType::f32), memory::data_type::f32);
  EXPECT_EQ(onednn_type(DataType::f16), memory::data_type::f16);
  EXPECT_EQ(onednn_type(DataType::bf16), memory::data_type::bf16);
  EXPECT_EQ(onednn_type(DataType::i32), memory::data_type::s32);
  EXPECT_EQ(onednn_type(DataType::u8), memory::data_type::u8);
}

TEST(MemoryDesc, HasTheOrderOfTheLayout) {
  const auto image = [](Layout layout) {
    return memory_desc({.shape = {2, 20, 5, 7}, .layout = layout});
  };
  EXPECT_EQ(image(Layout::nchw).get_strides(), (memory::dims{700, 35, 7, 1}));
  EXPECT_EQ(image(Layout::nhwc).get_strides(), (memory::dims{700, 1, 140, 20}));
  EXPECT_EQ(image(Layout::nchw16c).get_size(),
            std::size_t{2} * 32 * 35 * sizeof(float));  // 20 fill 32
}

TEST(MemoryDesc, HasADimensionForAScalar) {
  EXPECT_EQ(memory_desc({.shape = {}}).get_dims(), (memory::dims{1}));
}

TEST(MemoryDesc, GroupsDepthwiseWeightsAndTransposesMatrices) {
  EXPECT_EQ(memory_desc({.shape = {6, 1, 3, 3}}, View::grouped).get_dims(),
            (memory::dims{6, 1, 1, 3, 3}));
  const memory::desc matrix = memory_desc({.shape = {10, 4}}, View::transposed);
  EXPECT_EQ(matrix.get_dims(), (memory::dims{4, 10}));
  EXPECT_EQ(matrix.get_strides(), (memory::dims{1, 4}));
}

TEST(TensorDesc, IsReadBackFromTheMemoryOfEachLayout) {
  for (const Layout layout : {Layout::nchw, Layout::nhwc, Layout::nchw16c}) {
    const cnn::TensorDesc desc{.shape = {2, 20, 5, 7}, .type = DataType::bf16, .layout = layout};
    EXPECT_EQ(tensor_desc(desc, memory_desc(desc)), desc);
  }
}

TEST(TensorDesc, NamesTheOrderOfWeightsThatIsNoLayoutAndReadsItAgain) {
  const cnn::TensorDesc plain{.shape = {32, 16, 3, 3}};
  const memory::desc blocked({32, 16, 3, 3}, memory::data_type::f32,
                             memory::format_tag::ABcd16b16a);
  const std::optional<cnn::TensorDesc> packed = tensor_desc(plain, blocked);
  ASSERT_TRUE(packed);
  EXPECT_EQ(packed->layout, Layout::packed);
  EXPECT_EQ(packed->packing->tag, "same ABcd16b16a");
  EXPECT_EQ(packed->packing->bytes, plain.bytes());
  EXPECT_EQ(memory_desc(*packed), blocked);
  EXPECT_EQ(view_of(*packed), View::same);
}

TEST(MemoryDesc, RefusesPackingsThatAreNotOneDnns) {
  const auto error_for = [](std::string_view backend, const char* tag) {
    const cnn::TensorDesc packed{
        .shape = {32, 16, 3, 3},
        .layout = Layout::packed,
        .packing = std::make_shared<const Packing>(Packing{backend, tag, 0})};
    return tests::error_of([&] { memory_desc(packed); });
  };
  EXPECT_THAT(error_for("cudnn", "same abcd"), HasSubstr("packed for another backend"));
  EXPECT_THAT(error_for("onednn", "abcd"), HasSubstr("cannot read the packing 'abcd'"));
  EXPECT_THAT(error_for("onednn", "same qqqq"), HasSubstr("no memory order is named 'qqqq'"));
}

TEST(PrimitiveKernel, RefusesAWorkspaceThatIsTooSmall) {
  const cnn::TensorDesc from{.shape = {1, 8, 2, 2}};
  cnn::TensorDesc to = from;
  to.layout = Layout::nhwc;
  const dnnl::engine engine = cpu_engine();  // a plan refers to it
  Plan plan = plan_reorder(from, to, engine);
  plan.spec.workspace = 1;
  PrimitiveKernel kernel(plan, engine, "convert");
  EXPECT_THAT(tests::error_of([&] { kernel.execute({}); }), HasSubstr("workspace is too small"));
}

TEST(OpText, NamesTheOpAndItsSignature) {
  const cnn::TensorDesc vector{.shape = {3}};
  EXPECT_EQ(to_string(Relu(), {.in = {vector}, .out = {vector}}),
            "relu: (f32[3] nchw) -> (f32[3] nchw)");
}

}  // namespace
}  // namespace cnn::layers::cpu
