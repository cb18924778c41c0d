#include "layers/batch_norm.h"

#include <cmath>
#include <cstring>
#include <gtest/gtest.h>
#include <iterator>
#include <span>

#include "layers/relu_mask.h"
#include "tests/layers/cpu/own_kernels.h"
#include "tests/support/op_runner.h"

namespace cnn::tests {
namespace {

using layers::BatchNorm;
using layers::BatchNormAttributes;
using layers::BatchNormBackward;

bool equal_bytes(const HostTensor& a, const HostTensor& b) {
  return std::memcmp(a.view().data, b.view().data, a.desc().bytes()) == 0;
}

class BatchNormForms : public testing::TestWithParam<Form> {
 protected:
  TensorDesc image(Shape shape) const {
    return {.shape = shape, .type = GetParam().type, .layout = GetParam().layout};
  }
  static TensorDesc vector(std::int64_t size) { return {.shape = Shape{size}}; }

  OpRun run(const Op& op, const Signature& request,
            const std::vector<const HostTensor*>& in) const {
    std::vector<TensorView> views;
    views.reserve(in.size());
    for (const HostTensor* tensor : in) {
      views.push_back(tensor->view());
    }
    return run_op(own_kernels(*GetParam().loops), op, request, views).value();
  }
};

// Small images finish one block of channels after another; large ones take two passes over the
// whole tensor. Both sizes come in one chunk and in several.
TEST_P(BatchNormForms, EqualTheReferenceAtOddAndLargeShapes) {
  for (const Shape& shape : {Shape{2, 5, 3, 7}, Shape{3, 35, 1, 1}, Shape{1, 130, 9, 9},
                             Shape{5, 19, 37, 61}, Shape{4, 16, 97, 101}}) {
    const HostTensor x = draws(shape, GetParam().type, 1);
    const HostTensor residual = draws(shape, GetParam().type, 2);
    const HostTensor gamma = draws({shape[1]}, DataType::f32, 3);
    const HostTensor beta = draws({shape[1]}, DataType::f32, 4);
    const HostTensor dy = draws(shape, GetParam().type, 5);
    const HostTensor dy2 = draws(shape, GetParam().type, 8);
    const HostTensor y = draws(shape, GetParam().type, 6);
    const HostTensor mean = draws({shape[1]}, DataType::f32, 7);
    const HostTensor variance = constant({shape[1]}, 0.75F);
    BatchNormAttributes a{.scale = true, .relu = true, .residual = true};
    expect_like_reference(BatchNorm(a), {&x, &gamma, &beta, &residual}, GetParam(), 2e-5);
    expect_like_reference(BatchNormBackward(a), {&x, &gamma, &beta, &mean, &variance, &dy, &y},
                          GetParam(), 2e-5);
    expect_like_reference(BatchNormBackward(a, true),
                          {&x, &gamma, &beta, &mean, &variance, &dy, &dy2, &y}, GetParam(), 2e-5);
    a.relu = false;
    a.scale = false;
    expect_like_reference(BatchNormBackward(a), {&x, &beta, &mean, &variance, &dy}, GetParam(),
                          2e-5);
    expect_like_reference(BatchNormBackward(a, true), {&x, &beta, &mean, &variance, &dy, &dy2},
                          GetParam(), 2e-5);
  }
}

// The kernel does not store the output's sign. With a gradient of one everywhere, dbeta counts the
// outputs that the gate takes for positive. No output is near enough to zero for rounding to change
// its sign.
TEST_P(BatchNormForms, PassTheGradientExactlyWhereTheOutputIsPositive) {
  const Shape shape{3, 20, 11, 13};
  const HostTensor x = draws(shape, GetParam().type, 1);
  const HostTensor gamma = draws({20}, DataType::f32, 3);
  const HostTensor beta = draws({20}, DataType::f32, 4);
  const Signature request{.in = {image(shape), vector(20), vector(20)},
                          .out = {image(shape), vector(20), vector(20)}};
  const BatchNormAttributes a{.epsilon = 1e-3, .scale = true, .relu = true};
  const OpRun forward = run(BatchNorm(a), request, {&x, &gamma, &beta});
  const HostTensor dy = constant(shape, 1);
  const Signature back{
      .in = {image(shape), vector(20), vector(20), vector(20), vector(20), image(shape)},
      .out = {image(shape), vector(20), vector(20)}};
  const OpRun gradient =
      run(BatchNormBackward(a), back, {&x, &gamma, &beta, &forward.out[1], &forward.out[2], &dy});
  for (std::size_t c = 0; c < 20; ++c) {
    float positive = 0;
    for (std::size_t i = 0; i < x.view().as<float>().size(); ++i) {
      const bool own = i / 143 % 20 == c;
      positive += own && forward.out[0].view().as<float>()[i] > 0 ? 1 : 0;
    }
    EXPECT_EQ(gradient.out[1].view().as<float>()[c], positive) << "channel " << c;
  }
}

// The sum of both gradients is exact here, so adding it beforehand must give the same result.
TEST_P(BatchNormForms, AddTwoGradientsAsANodeBeforeWould) {
  const Shape shape{3, 35, 11, 13};
  const HostTensor x = draws(shape, GetParam().type, 1);
  const HostTensor beta = draws({35}, DataType::f32, 2);
  const HostTensor variance = constant({35}, 0.75F);
  const HostTensor y = draws(shape, GetParam().type, 3);
  HostTensor dy = draws(shape, GetParam().type, 4);
  HostTensor dy2 = draws(shape, GetParam().type, 5);
  HostTensor sum = draws(shape, GetParam().type, 6);
  for (std::size_t i = 0; i < sum.view().as<float>().size(); ++i) {  // multiples of 1/8
    dy.view().as<float>()[i] = std::round(dy.view().as<float>()[i] * 8) / 8;
    dy2.view().as<float>()[i] = std::round(dy2.view().as<float>()[i] * 8) / 8;
    sum.view().as<float>()[i] = dy.view().as<float>()[i] + dy2.view().as<float>()[i];
  }
  for (const bool relu : {false, true}) {
    for (const bool residual : {false, true}) {
      const BatchNormAttributes a{.relu = relu, .residual = residual};
      std::vector<const HostTensor*> one{&x, &beta, &beta, &variance, &sum};
      std::vector<const HostTensor*> two{&x, &beta, &beta, &variance, &dy, &dy2};
      Signature request{.in = {image(shape), vector(35), vector(35), vector(35), image(shape)},
                        .out = {image(shape), vector(35)}};
      if (relu && residual) {
        one.push_back(&y);
        two.push_back(&y);
        request.in.push_back(image(shape));
        request.out.push_back(image(shape));
      }
      const OpRun expected = run(BatchNormBackward(a), request, one);
      request.in.push_back(image(shape));
      const OpRun actual = run(BatchNormBackward(a, true), request, two);
      for (std::size_t i = 0; i < expected.out.size(); ++i) {
        const TensorView view = expected.out[i].view();
        EXPECT_EQ(std::memcmp(view.data, actual.out[i].view().data, view.desc.bytes()), 0)
            << "output " << i << (relu ? ", relu" : "") << (residual ? ", residual" : "");
      }
    }
  }
}

// Compares the bit mask with the output as gate. The outputs include NaN, zeros of both signs and
// values that round to zero; channel counts fill neither a byte nor a block.
TEST_P(BatchNormForms, GateByAMaskWhatTheyGateByTheOutput) {
  for (const Shape& shape : {Shape{2, 5, 3, 7}, Shape{3, 20, 9, 5}, Shape{2, 24, 11, 13},
                             Shape{2, 64, 57, 59}, Shape{1, 130, 9, 9}}) {
    const DataType type = GetParam().type;
    const HostTensor x = draws(shape, type, 1);
    const HostTensor residual = draws(shape, type, 2);
    const std::span<float> odd = residual.view().as<float>();
    for (std::size_t i = 0; i < odd.size(); i += 5) {
      const float values[] = {NAN, -0.0F, 0, INFINITY, 0x1p-134F, 0x1p-133F, -INFINITY};
      odd[i] = values[i / 5 % std::size(values)];
    }
    const std::int64_t channels = shape[1];
    const HostTensor beta = draws({channels}, DataType::f32, 3);
    const HostTensor variance = constant({channels}, 0.75F);
    const HostTensor dy = draws(shape, type, 4);
    const HostTensor dy2 = draws(shape, type, 5);
    BatchNormAttributes a{.relu = true, .residual = true};
    const TensorDesc mask{layers::relu_mask_of(shape).shape, DataType::u8, GetParam().layout};
    const TensorDesc by_channel = vector(channels);
    Signature request{.in = {image(shape), by_channel, image(shape)},
                      .out = {image(shape), by_channel, by_channel}};
    const OpRun plain = run(BatchNorm(a), request, {&x, &beta, &residual});
    Signature back{.in = {image(shape), by_channel, by_channel, by_channel, image(shape),
                          image(shape), image(shape)},
                   .out = {image(shape), by_channel, image(shape)}};
    const OpRun by_output = run(BatchNormBackward(a, true), back,
                                {&x, &beta, &beta, &variance, &dy, &dy2, &plain.out[0]});
    a.mask = true;
    request.out.push_back(mask);
    const OpRun masked = run(BatchNorm(a), request, {&x, &beta, &residual});
    HostTensor expected(cnn::plain(mask));
    layers::set_relu_mask(plain.out[0].view(), expected.view());
    EXPECT_TRUE(equal_bytes(expected, masked.out[3]));
    EXPECT_TRUE(equal_bytes(plain.out[0], masked.out[0]));
    back.in.back() = mask;
    const OpRun by_mask = run(BatchNormBackward(a, true), back,
                              {&x, &beta, &beta, &variance, &dy, &dy2, &masked.out[3]});
    for (std::size_t i = 0; i < by_output.out.size(); ++i) {
      EXPECT_TRUE(equal_bytes(by_output.out[i], by_mask.out[i])) << "output " << i;
    }
  }
}

TEST_P(BatchNormForms, KeepAVarianceThatIsSmallBesideTheMean) {
  const Shape shape{2, 3, 40, 40};
  HostTensor x = constant(shape, 256);
  for (std::size_t i = 0; i < x.view().as<float>().size(); i += 2) {
    x.view().as<float>()[i] = 258;  // mean 257, variance 1
  }
  const HostTensor beta = constant({3}, 0);
  const OpRun result = run(
      BatchNorm(BatchNormAttributes{}),
      {.in = {image(shape), vector(3)}, .out = {image(shape), vector(3), vector(3)}}, {&x, &beta});
  for (std::size_t c = 0; c < 3; ++c) {
    EXPECT_EQ(result.out[1].view().as<float>()[c], 257);
    EXPECT_FLOAT_EQ(result.out[2].view().as<float>()[c], 1);
  }
}

TEST_P(BatchNormForms, DoNotDependOnTheNumberOfThreads) {
  const Shape shape{6, 33, 57, 59};
  const HostTensor x = draws(shape, GetParam().type, 1);
  const HostTensor dy = draws(shape, GetParam().type, 2);
  const HostTensor beta = draws({33}, DataType::f32, 3);
  const HostTensor variance = constant({33}, 0.3F);
  const BatchNormAttributes a{.relu = true};
  std::vector<OpRun> forward, backward;
  for (const int threads : {1, 2, 5}) {
    const Threads team(threads);
    forward.push_back(
        run(BatchNorm(a),
            {.in = {image(shape), vector(33)}, .out = {image(shape), vector(33), vector(33)}},
            {&x, &beta}));
    backward.push_back(run(BatchNormBackward(a),
                           {.in = {image(shape), vector(33), vector(33), vector(33), image(shape)},
                            .out = {image(shape), vector(33)}},
                           {&x, &beta, &beta, &variance, &dy}));
  }
  for (const std::vector<OpRun>* runs : {&forward, &backward}) {
    for (std::size_t other = 1; other < runs->size(); ++other) {
      for (std::size_t i = 0; i < runs->front().out.size(); ++i) {
        const TensorView one = runs->front().out[i].view();
        EXPECT_EQ(std::memcmp(one.data, (*runs)[other].out[i].view().data, one.desc.bytes()), 0)
            << "output " << i;
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Own, BatchNormForms, testing::ValuesIn(all_forms()),
                         [](const auto& row) { return name_of(row.param); });

}  // namespace
}  // namespace cnn::tests
