#include "layers/cpu/onednn/widened.h"

#include <cstring>
#include <gtest/gtest.h>
#include <vector>

#include "tests/support/op_runner.h"

namespace cnn::layers::cpu {
namespace {

TensorDesc image(DataType type, Layout layout) {
  return {.shape = {1, 2, 1, 2}, .type = type, .layout = layout};
}

// Fixture that plans a change of layout in f32.
class Widened : public testing::Test {
 protected:
  Plan transposition() const {
    return plan_reorder(image(DataType::f32, Layout::nchw), image(DataType::f32, Layout::nhwc),
                        engine);
  }

  dnnl::engine engine = cpu_engine();
};

TEST_F(Widened, SpecKeepsTheTypesAskedAndMakesRoomForWideCopies) {
  const Signature request{{image(DataType::bf16, Layout::nchw)},
                          {image(DataType::bf16, Layout::nhwc)}};
  const KernelSpec spec = widened_spec(transposition(), request, engine);
  EXPECT_TRUE(is_widened(transposition(), request));
  EXPECT_EQ(spec.in, request.in);
  EXPECT_EQ(spec.out, request.out);
  EXPECT_EQ(spec.workspace, 2 * 64U);  // two copies of 16 bytes, each aligned to a cache line
}

TEST_F(Widened, SpecOfAPlanAsAskedIsThePlans) {
  const Signature request{{image(DataType::f32, Layout::nchw)},
                          {image(DataType::f32, Layout::nhwc)}};
  EXPECT_FALSE(is_widened(transposition(), request));
  EXPECT_EQ(widened_spec(transposition(), request, engine).workspace, 0U);
}

TEST_F(Widened, KernelConvertsOnTheWayInAndOut) {
  const Signature signature{{image(DataType::bf16, Layout::nchw)},
                            {image(DataType::bf16, Layout::nhwc)}};
  WidenedKernel kernel(transposition(), signature, engine, "transposition");
  const tests::HostTensor x(signature.in[0]), y(signature.out[0]);
  const tests::HostTensor workspace({.shape = {128}, .type = DataType::u8});
  const std::vector<BFloat16> values{to_bf16(1), to_bf16(2), to_bf16(-3), to_bf16(0.5F)};
  std::memcpy(x.view().data, values.data(), 8);
  const Operands operands{{x.view()}, {y.view()}, workspace.view().as<std::byte>()};
  tests::ImmediateStream stream;
  kernel.run(stream, operands);
  const auto* result = reinterpret_cast<const BFloat16*>(y.view().data);
  EXPECT_EQ(to_float(result[0]), 1);
  EXPECT_EQ(to_float(result[1]), -3);
  EXPECT_EQ(to_float(result[2]), 2);
  EXPECT_EQ(to_float(result[3]), 0.5F);
}

}  // namespace
}  // namespace cnn::layers::cpu
