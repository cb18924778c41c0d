// Compares our own kernels with the reference loops of their ops in every instruction set, type and
// layout.

#include "tests/layers/cpu/own_kernels.h"

#include <cmath>
#include <gtest/gtest.h>

#include "layers/activation.h"
#include "layers/batch_slice.h"
#include "layers/column_slice.h"
#include "layers/concat.h"
#include "layers/dense.h"
#include "layers/drop_path.h"
#include "layers/dropout.h"
#include "layers/elementwise.h"
#include "layers/loss.h"
#include "layers/pool.h"
#include "layers/row_slice.h"
#include "layers/subsample.h"
#include "runtime/error.h"
#include "tests/support/op_runner.h"

namespace cnn::tests {
namespace {

const std::vector<Shape>& images() {
  static const std::vector<Shape> shapes{
      {1, 1, 1, 1}, {2, 3, 5, 7}, {3, 16, 4, 4}, {2, 37, 6, 5}, {2, 21, 67, 33}};
  return shapes;
}

class OwnKernels : public testing::TestWithParam<Form> {};

TEST_P(OwnKernels, ActivateLikeTheReference) {
  for (const Shape& shape : images()) {
    const HostTensor x = draws(shape, GetParam().type, 1);
    const HostTensor dy = draws(shape, GetParam().type, 2);
    expect_like_reference(layers::Relu(), {&x}, GetParam(), 0);
    expect_like_reference(layers::Relu(0.5F), {&x}, GetParam(), 0);
    expect_like_reference(layers::ReluBackward(), {&dy, &x}, GetParam(), 0);
    expect_like_reference(layers::ReluBackward(0.5F), {&dy, &x}, GetParam(), 0);
  }
}

TEST_P(OwnKernels, AddAnyNumberOfTensors) {
  for (const Shape& shape : images()) {
    std::vector<HostTensor> tensors;
    for (std::uint64_t i = 0; i < 33; ++i) {
      tensors.push_back(draws(shape, GetParam().type, i));
    }
    for (const std::size_t count : {2U, 3U, 16U, 17U, 33U}) {
      if (GetParam().type == DataType::bf16 && count > 16) {
        continue;  // partial sums are rounded to bf16 there
      }
      std::vector<const HostTensor*> in;
      for (std::size_t i = 0; i < count; ++i) {
        in.push_back(&tensors[i]);
      }
      expect_like_reference(layers::Add(false), in, GetParam(), 1e-6);
      expect_like_reference(layers::Add(true), in, GetParam(), 1e-6);
    }
  }
}

TEST_P(OwnKernels, ScaleLikeTheReference) {
  for (const Shape& shape : images()) {
    const HostTensor x = draws(shape, GetParam().type, 1);
    expect_like_reference(layers::Scale(-0.75F), {&x}, GetParam(), 0);
  }
}

TEST_P(OwnKernels, JoinAndCutChannelsAnywhere) {
  const HostTensor a = draws({2, 5, 3, 4}, GetParam().type, 1);
  const HostTensor b = draws({2, 16, 3, 4}, GetParam().type, 2);
  const HostTensor c = draws({2, 45, 3, 4}, GetParam().type, 3);
  for (const auto& in : std::vector<std::vector<const HostTensor*>>{
           {&a, &b, &c}, {&b, &a}, {&c, &c, &a}, {&b, &b}, {&a}}) {
    expect_like_reference(layers::Concat(), in, GetParam(), 0);
  }
  for (const auto& channels :
       std::vector<std::vector<std::int64_t>>{{45}, {16, 16, 13}, {1, 43, 1}, {17, 20, 8}}) {
    expect_like_reference(layers::Split(channels), {&c}, GetParam(), 0);
  }
  for (const auto& [before, after] :
       std::vector<std::pair<std::int64_t, std::int64_t>>{{0, 3}, {7, 0}, {16, 16}, {9, 18}}) {
    expect_like_reference(layers::PadChannels(before, after), {&c}, GetParam(), 0);
  }
  for (const auto& [first, count] :
       std::vector<std::pair<std::int64_t, std::int64_t>>{{0, 5}, {16, 16}, {13, 32}, {44, 1}}) {
    expect_like_reference(layers::SliceChannels(first, count), {&c}, GetParam(), 0);
  }
}

TEST_P(OwnKernels, DropTheSameElementsInEveryLayout) {
  HostTensor step(TensorDesc{.shape = {}, .type = DataType::i32});
  step.view().as<std::int32_t>()[0] = 3;
  for (Shape shape : images()) {
    const HostTensor x = draws(shape, GetParam().type, 1);
    expect_like_reference(layers::Dropout(0.3, 99), {&x, &step}, GetParam(), 0);
    shape = {shape[0], shape[1] * 5};
    const HostTensor rows = draws(shape, DataType::f32, 1);
    expect_like_reference(layers::Dropout(0.5, 7), {&rows, &step}, GetParam(), 0);
  }
  for (const std::int64_t channels : {16, 35, 2048}) {
    const HostTensor x = draws({4, channels, 1, 1}, GetParam().type, 1);
    expect_like_reference(layers::Dropout(0.7, 99), {&x, &step}, GetParam(), 0);
  }
}

TEST_P(OwnKernels, DropTheSameExamplesInEveryLayout) {
  HostTensor step(TensorDesc{.shape = {}, .type = DataType::i32});
  step.view().as<std::int32_t>()[0] = 3;
  const layers::DropPath op({1U << 23, 4}, 99);
  for (Shape shape : images()) {
    shape = {shape[0] + 7, shape[1], shape[2], shape[3]};
    const HostTensor x = draws(shape, GetParam().type, 1);
    expect_like_reference(op, {&x, &step}, GetParam(), 0);
    const HostTensor rows = draws({shape[0], shape[1]}, DataType::f32, 1);
    expect_like_reference(op, {&rows, &step}, GetParam(), 0);
  }
}

TEST_P(OwnKernels, KeepOnePixelOfEachStride) {
  for (const Shape& shape : images()) {
    for (const std::int64_t offset : {0, 1, 2}) {
      const layers::Window window{.stride_h = 3,
                                  .stride_w = 3,
                                  .pad_top = -offset,
                                  .pad_bottom = offset,
                                  .pad_left = -offset,
                                  .pad_right = offset};
      const HostTensor x = draws(shape, GetParam().type, 1);
      const Shape kept{shape[0], shape[1], window.output_h(shape[2]), window.output_w(shape[3])};
      const HostTensor dy = draws(kept, GetParam().type, 2);
      expect_like_reference(layers::Subsample(window), {&x}, GetParam(), 0);
      expect_like_reference(layers::SubsampleBackward(window, shape), {&dy}, GetParam(), 0);
    }
  }
}

TEST_P(OwnKernels, SliceAndJoinBatches) {
  for (const Shape& shape : images()) {
    const HostTensor x = draws({shape[0] + 2, shape[1], shape[2], shape[3]}, GetParam().type, 1);
    const HostTensor y = draws(shape, GetParam().type, 2);
    expect_like_reference(layers::SliceBatch(1, shape[0]), {&x}, GetParam(), 0);
    expect_like_reference(layers::ConcatBatch(), {&x, &y, &x}, GetParam(), 0);
  }
}

TEST_P(OwnKernels, SliceAndJoinColumnsOfMatrices) {
  const HostTensor x = draws({7, 37}, GetParam().type, 1), y = draws({7, 16}, GetParam().type, 2);
  expect_like_reference(layers::SliceColumns(0, 37), {&x}, GetParam(), 0);
  expect_like_reference(layers::SliceColumns(5, 20), {&x}, GetParam(), 0);
  expect_like_reference(layers::ConcatColumns(), {&x, &y, &x}, GetParam(), 0);
}

TEST_P(OwnKernels, SliceAndJoinRowsOfImages) {
  for (const Shape& shape : images()) {
    const HostTensor x = draws({shape[0], shape[1], shape[2] + 3, shape[3]}, GetParam().type, 1);
    const HostTensor y = draws(shape, GetParam().type, 2);
    expect_like_reference(layers::SliceRows(0, 2), {&x}, GetParam(), 0);
    expect_like_reference(layers::SliceRows(2, shape[2] + 1), {&x}, GetParam(), 0);
    expect_like_reference(layers::SliceRowsBackward(0, shape[2]), {&y}, GetParam(), 0);
    expect_like_reference(layers::SliceRowsBackward(2, shape[2] + 3), {&y}, GetParam(), 0);
    expect_like_reference(layers::ConcatRows(), {&x, &y, &x}, GetParam(), 0);
  }
}

TEST_P(OwnKernels, AverageOverPixelsAndSpreadTheGradient) {
  for (const Shape& shape : images()) {
    const HostTensor x = draws(shape, GetParam().type, 1);
    expect_like_reference(layers::SpatialMean(), {&x}, GetParam(), 2e-6);
  }
}

TEST_P(OwnKernels, FlattenLikeTheReference) {
  for (const Shape& shape : images()) {
    const HostTensor x = draws(shape, GetParam().type, 1);
    expect_like_reference(layers::Flatten(), {&x}, GetParam(), 0);
    if (GetParam().type == DataType::f32) {
      const HostTensor dy = draws({shape[0], shape[1] * shape[2] * shape[3]}, DataType::f32, 2);
      expect_like_reference(layers::Unflatten(shape), {&dy}, GetParam(), 0);
      const HostTensor mean = draws({shape[0], shape[1]}, DataType::f32, 3);
      expect_like_reference(layers::SpatialMeanBackward(shape), {&mean}, GetParam(), 1e-6);
    }
  }
}

TEST_P(OwnKernels, FillAllButThePadding) {
  for (const Shape& shape : images()) {
    expect_like_reference(layers::Fill(shape, 2.5F), {},
                          {GetParam().loops, DataType::f32, GetParam().layout}, 0);
  }
}

TEST_P(OwnKernels, NormaliseBytesIntoAnyLayout) {
  for (const Shape& shape : images()) {
    const HostTensor x = draws(shape, DataType::u8, 1);
    const layers::Normalise op(0.25F, -1.5F, GetParam().type);
    for (const Layout from : {Layout::nchw, Layout::nhwc}) {
      const TensorDesc in{.shape = shape, .type = DataType::u8, .layout = from};
      const TensorDesc out{.shape = shape, .type = GetParam().type, .layout = GetParam().layout};
      const std::vector<TensorView> views{x.view()};
      const auto run =
          run_op(own_kernels(*GetParam().loops), op, {.in = {in}, .out = {out}}, views);
      ASSERT_TRUE(run.has_value());
      EXPECT_EQ(run->signature.out[0], out);
      for (std::size_t i = 0; i < static_cast<std::size_t>(shape.elements()); ++i) {
        const auto pixel = static_cast<float>(x.view().as<std::uint8_t>()[i]);
        ASSERT_EQ(run->out[0].view().as<float>()[i], pixel * 0.25F - 1.5F);
      }
    }
  }
}

TEST_P(OwnKernels, TakeTheLossOfEveryRow) {
  for (const auto& [rows, classes] :
       std::vector<std::pair<std::int64_t, std::int64_t>>{{1, 10}, {5, 11}, {70, 1001}}) {
    const HostTensor logits = draws({rows, classes}, DataType::f32, 1);
    const HostTensor labels = draws({rows}, DataType::i32, 2);
    const HostTensor dloss = constant({}, 128);
    expect_like_reference(layers::SoftmaxCrossEntropy(), {&logits, &labels}, GetParam(), 1e-6);
    expect_like_reference(layers::SoftmaxCrossEntropyBackward(), {&logits, &labels, &dloss},
                          GetParam(), 1e-6);
  }
}

TEST_P(OwnKernels, RejectALabelOutsideTheClasses) {
  const HostTensor logits = draws({2, 4}, DataType::f32, 1);
  HostTensor labels(TensorDesc{.shape = {2}, .type = DataType::i32});
  labels.view().as<std::int32_t>()[0] = 3;
  labels.view().as<std::int32_t>()[1] = 4;
  EXPECT_THROW(
      expect_like_reference(layers::SoftmaxCrossEntropy(), {&logits, &labels}, GetParam(), 1e-6),
      Error);
}

TEST_P(OwnKernels, KeepNanVisible) {
  HostTensor x = draws({1, 16, 2, 3}, GetParam().type, 1);
  x.view().as<float>()[7] = std::nanf("");
  expect_like_reference(layers::Relu(), {&x}, GetParam(), 0);
  expect_like_reference(layers::Add(true), {&x, &x}, GetParam(), 0);
  expect_like_reference(layers::Scale(2), {&x}, GetParam(), 0);
}

INSTANTIATE_TEST_SUITE_P(Own, OwnKernels, testing::ValuesIn(all_forms()),
                         [](const auto& row) { return name_of(row.param); });

}  // namespace
}  // namespace cnn::tests
