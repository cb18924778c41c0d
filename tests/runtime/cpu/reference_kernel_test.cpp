#include "runtime/cpu/reference_kernel.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <vector>

#include "runtime/cpu/device.h"
#include "runtime/error.h"
#include "tests/support/test_ops.h"

namespace cnn {
namespace {

using ::testing::ElementsAre;
using tests::floats;
using tests::Scale;

TEST(ReferenceKernel, RunsThePlainLoopsInStreamOrder) {
  CpuDevice device;
  const auto stream = device.make_stream(Lane::compute);
  std::vector<float> in{1, 2};
  std::vector<float> out(2);
  const auto view = [](std::vector<float>& values) {
    return TensorView{.desc = floats(2), .data = reinterpret_cast<std::byte*>(values.data())};
  };
  const Operands operands{.in = {view(in)}, .out = {view(out)}, .workspace = {}};
  const Scale op(3);
  ReferenceKernel kernel(op);
  stream->host([&in] { in[0] = 5; });
  kernel.run(*stream, operands);
  stream->synchronize();
  EXPECT_THAT(out, ElementsAre(16, 7));
}

TEST(AddReference, ServesEveryOpInPlainF32AndKeepsIntegers) {
  KernelTable table;
  add_reference(table);
  const TensorDesc half{.shape = {1, 2, 3, 4}, .type = DataType::bf16, .layout = Layout::nhwc};
  const TensorDesc labels{.shape = {4}, .type = DataType::i32};
  const TensorDesc pixels{.shape = {4}, .type = DataType::u8, .layout = Layout::nhwc};
  const auto spec = table.describe(Scale(1), {.in = {half, labels}, .out = {pixels}});
  ASSERT_TRUE(spec);
  EXPECT_EQ(spec->workspace, 0U);
  EXPECT_EQ(spec->in[0], (TensorDesc{.shape = {1, 2, 3, 4}}));
  EXPECT_EQ(spec->in[1], labels);
  EXPECT_EQ(spec->out[0], (TensorDesc{.shape = {4}, .type = DataType::u8}));
}

TEST(AddReference, LeavesToOthersWhatMovesDataBetweenRanks) {
  KernelTable table;
  add_reference(table);
  const TensorDesc desc{.shape = {4}};
  const Scale exchange(1, {.lane = Lane::communicate});
  EXPECT_FALSE(table.describe(exchange, {.in = {desc}, .out = {desc}}));
  EXPECT_THROW(table.make(exchange, {.in = {desc}, .out = {desc}}), Error);
}

}  // namespace
}  // namespace cnn
