// Tests the kernels that walk linearly through memory beyond the op cases: both layouts, more
// elements than the grid has threads, and rare branches of optimizers and losses.

#include <algorithm>
#include <cmath>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <iterator>
#include <limits>
#include <span>
#include <string>
#include <vector>

#include "layers/activation.h"
#include "layers/concat.h"
#include "layers/cuda/own_kernels.h"
#include "layers/drop_path.h"
#include "layers/dropout.h"
#include "layers/elementwise.h"
#include "layers/loss.h"
#include "layers/operands.h"
#include "layers/optimizer.h"
#include "tests/layers/conformance.h"
#include "tests/support/grid/on_grid.h"
#include "tests/support/literals.h"
#include "tests/support/numeric.h"

namespace cnn::tests {
namespace {

using layers::described;

constexpr float nan_value = std::numeric_limits<float>::quiet_NaN();
constexpr float infinity = std::numeric_limits<float>::infinity();

KernelTable own_kernels(grid::Order order = {}) {
  KernelTable table;
  layers::cuda::add_own_kernels(table);
  return grid::in_order(std::move(table), order);
}

// Runs an op on literal row-major operands of f32 or integers. Returns the inputs as the op left
// them, then the outputs.
template <class... Tensors>
OpRun run_own(const Op& op, const Tensors&... tensors) {
  const std::vector<TensorView> in{tensors.view()...};
  Signature request;
  for (const TensorView& view : in) {
    request.in.push_back(view.desc);
  }
  request.out = op.infer(request.in);
  auto result = run_op(own_kernels(), op, request, in);
  check(result.has_value(), "there is no kernel");
  return std::move(*result);
}

std::int32_t integer(const HostTensor& t) { return t.view().as<std::int32_t>()[0]; }

// Counts 0, 1, 2 and so on modulo 1000, so that all values in any run of 1000 elements differ.
HostTensor counted(const Shape& shape) {
  HostTensor result(described(shape, DataType::f32));
  float next = 0;
  for (float& value : result.view().as<float>()) {
    value = next;
    next = next == 999 ? 0 : next + 1;
  }
  return result;
}

struct Reorder {
  std::string name;
  Shape shape;
};

class Reordering : public testing::TestWithParam<Reorder> {};

TEST_P(Reordering, MovesEveryElementBetweenLayoutsAndTypes) {
  const HostTensor x = counted(GetParam().shape);
  for (const DataType from : {DataType::f32, DataType::f16}) {
    for (const DataType to : {DataType::f32, DataType::f16}) {
      for (const Layout layout : {Layout::nchw, Layout::nhwc}) {
        const Layout other = layout == Layout::nchw ? Layout::nhwc : Layout::nchw;
        const Signature request{.in = {{GetParam().shape, from, layout}},
                                .out = {{GetParam().shape, to, other}}};
        for (const grid::Order order : grid::all_orders()) {
          const auto run =
              run_op(own_kernels(order), layers::Convert(to), request, std::vector{x.view()});
          ASSERT_TRUE(run);
          EXPECT_EQ(run->signature.in, request.in);
          EXPECT_EQ(run->signature.out, request.out);
          EXPECT_TRUE(equal_bytes(run->out[0], x)) << to_string(request) << ' ' << to_string(order);
        }
      }
    }
  }
}

std::string name_of_reorder(const testing::TestParamInfo<Reorder>& row) { return row.param.name; }

INSTANTIATE_TEST_SUITE_P(
    Layouts, Reordering,
    testing::Values(Reorder{"few_channels", {2, 3, 5, 7}}, Reorder{"few_pixels", {5, 33, 1, 3}},
                    Reorder{"one_channel", {3, 1, 4, 4}}, Reorder{"one_pixel", {3, 20, 1, 1}},
                    Reorder{"whole_tiles", {2, 32, 8, 8}}, Reorder{"ragged_tiles", {3, 40, 9, 5}}),
    name_of_reorder);

TEST(FlatKernels, MapU8InNchwToNhwc) {
  const HostTensor x = tensor<std::uint8_t>({1, 3, 1, 2}, {0, 1, 2, 3, 4, 255});
  const Signature request{.in = {{{1, 3, 1, 2}, DataType::u8, Layout::nchw}},
                          .out = {{{1, 3, 1, 2}, DataType::f16, Layout::nhwc}}};
  const auto run = run_op(own_kernels(), layers::Normalise(0.5F, -1, DataType::f16), request,
                          std::vector{x.view()});
  ASSERT_TRUE(run);
  EXPECT_EQ(run->signature.out[0].layout, Layout::nhwc);
  EXPECT_THAT(floats(run->out[0]), testing::ElementsAre(-1, -0.5F, 0, 0.5F, 1, 126.5F));
}

// The elements exceed one pass of 132 * 8 blocks of 256 threads.
TEST(FlatKernels, GoOnWhereTheGridEnds) {
  const HostTensor x = counted({2'162'700 + 5'000});
  const OpRun run = run_own(layers::Scale(-2), x);
  const OpRun sum = run_own(layers::Add(), x, x);
  const auto all_are = [&](const HostTensor& y, float factor) {
    for (std::size_t i = 0; i < floats(x).size(); ++i) {
      if (floats(y)[i] != factor * floats(x)[i]) {
        return false;
      }
    }
    return true;
  };
  EXPECT_TRUE(all_are(run.out[0], -2));
  EXPECT_TRUE(all_are(sum.out[0], 2));
}

TEST(FlatKernels, CopyChannelsBeyondTheGrid) {
  const HostTensor x = counted({9, 3, 200, 201});
  const std::vector<HostTensor> expected = run(layers::PadChannels(1, 0), x);
  const TensorDesc from{{9, 3, 200, 201}, DataType::f32, Layout::nhwc};
  const auto padded =
      run_op(own_kernels(), layers::PadChannels(1, 0),
             {.in = {from}, .out = {{{9, 4, 200, 201}, {}, Layout::nhwc}}}, std::vector{x.view()});
  ASSERT_TRUE(padded);
  EXPECT_TRUE(equal_bytes(padded->out[0], expected[0]));
}

TEST(FlatKernels, KeepNanInReluAndAdd) {
  const HostTensor x = tensor({5}, {nan_value, -1, 2, infinity, -infinity});
  const OpRun relu = run_own(layers::Relu(), x);
  EXPECT_TRUE(std::isnan(floats(relu.out[0])[0]));
  EXPECT_THAT(floats(relu.out[0]).subspan(1), testing::ElementsAre(0, 2, infinity, 0));
  EXPECT_TRUE(std::isnan(floats(run_own(layers::Add(true), x, x).out[0])[0]));
}

TEST(FlatKernels, DropExactlyWhatTheOpDrops) {
  const layers::Dropout op(0.3, 12345);
  const HostTensor x = tensor({2, 3, 2, 3}, std::vector<float>(36, 1.5F));
  const HostTensor step = tensor<std::int32_t>({}, {41});
  const TensorDesc nhwc{{2, 3, 2, 3}, DataType::f32, Layout::nhwc};
  const auto run = run_op(own_kernels(), op, {.in = {nhwc, step.desc()}, .out = {nhwc}},
                          std::vector{x.view(), step.view()});
  ASSERT_TRUE(run);
  for (std::size_t i = 0; i < 36; ++i) {
    EXPECT_EQ(floats(run->out[0])[i], layers::keeps(12345, 41, i, 0.3) ? 1.5F / 0.3F : 0) << i;
  }
}

TEST(FlatKernels, DropExactlyTheExamplesThatTheOpDrops) {
  const layers::DropPath op({1U << 23, 50}, 12345);
  for (const std::int64_t of_example : {1, 3, 5, 64}) {
    const HostTensor x =
        tensor({12, of_example}, std::vector<float>(static_cast<std::size_t>(12 * of_example), 3));
    const HostTensor step = tensor<std::int32_t>({}, {25});
    const OpRun dropped = run_own(op, x, step);
    for (std::size_t n = 0; n < 12; ++n) {
      const float expected = layers::keeps_path(op, 25, n) ? 4.0F : 0.0F;
      EXPECT_THAT(floats(dropped.out[0])
                      .subspan(n * static_cast<std::size_t>(of_example),
                               static_cast<std::size_t>(of_example)),
                  testing::Each(expected))
          << "example " << n << " of " << of_example;
    }
  }
}

layers::UpdateAttributes automatic(layers::Rule rule) {
  layers::UpdateAttributes a;
  a.rule = rule;
  a.weight_decay = 0.5;
  a.automatic_loss_scale = true;
  a.decay = {true};
  return a;
}

// Returns tensors of 1 to 7 elements, and one that takes several blocks.
std::vector<HostTensor> many_tensors(std::int64_t count, float factor) {
  std::vector<HostTensor> result;
  for (std::int64_t i = 0; i < count; ++i) {
    result.push_back(counted({i == 77 ? 20'003 : 1 + i % 7}));
    for (float& value : result.back().view().as<float>()) {
      value = factor * (value + static_cast<float>(i));
    }
  }
  return result;
}

void append(std::vector<HostTensor>& to, std::vector<HostTensor> from) {
  std::ranges::move(from, std::back_inserter(to));
}

std::vector<TensorDesc> descs_of(std::span<const HostTensor> tensors) {
  std::vector<TensorDesc> result;
  for (const HostTensor& tensor : tensors) {
    result.push_back(tensor.desc());
  }
  return result;
}

// One launch has space for the addresses of 102 parameters with a gradient and a slot, or of 160
// tensors.
TEST(OptimizerKernels, TakeMoreTensorsThanFitOneLaunch) {
  constexpr std::int64_t count = 170;
  layers::UpdateAttributes a;
  a.rule = layers::Rule::momentum;
  a.weight_decay = 0.25;
  for (std::int64_t i = 0; i < count; ++i) {
    a.decay.push_back(i % 3 != 0);
  }
  const layers::Update update(a, static_cast<std::size_t>(count));
  std::vector<HostTensor> in;
  in.push_back(tensor({}, {0.125F}));
  append(in, many_tensors(count, 0.01F));
  append(in, many_tensors(count, -0.5F));
  append(in, many_tensors(count, 0.002F));
  const Signature request{.in = descs_of(in), .out = update.infer(descs_of(in))};
  const Expected expected(update, views_of(in), request.out);
  const auto run = run_op(own_kernels(), update, request, views_of(in));
  ASSERT_TRUE(run);
  EXPECT_FALSE(difference(expected.out[0].view(), run->out[0].view(), 1e-6));
  for (std::size_t i = 0; i < in.size(); ++i) {
    EXPECT_FALSE(difference(expected.after[i].view(), run->after[i].view(), 1e-6)) << i;
  }
  in.erase(in.begin());
  in[165].view().as<float>()[0] = infinity;
  const auto found =
      run_op(own_kernels(), layers::FoundInf(),
             {.in = descs_of(in), .out = {described({}, DataType::i32)}}, views_of(in));
  ASSERT_TRUE(found);
  EXPECT_EQ(integer(found->out[0]), 1);
}

TEST(OptimizerKernels, WriteNothingAfterAnOverflow) {
  const layers::Update op(automatic(layers::Rule::momentum), 1);
  const HostTensor rate = tensor({}, {0.1F});
  const HostTensor scale = tensor({}, {2});
  const HostTensor w = tensor({3}, {1, 2, 3});
  const HostTensor g = tensor({3}, {1, nan_value, 3});
  const HostTensor slot = tensor({3}, {4, 5, 6});
  const OpRun run = run_own(op, rate, scale, tensor<std::int32_t>({}, {1}), w, g, slot);
  EXPECT_THAT(floats(run.after[3]), testing::ElementsAre(1, 2, 3));
  EXPECT_THAT(floats(run.after[5]), testing::ElementsAre(4, 5, 6));
  EXPECT_EQ(floats(run.out[0])[0], 7) << "the L2 term is computed anyway";
}

TEST(OptimizerKernels, KeepANanGradientWhereItIsClipped) {
  layers::UpdateAttributes a;
  a.clip = 1;
  a.decay = {false};
  const OpRun run = run_own(layers::Update(a, 1), tensor({}, {1}), tensor({3}, {0, 0, 0}),
                            tensor({3}, {nan_value, 8, -infinity}));
  EXPECT_TRUE(std::isnan(floats(run.after[1])[0]));
  EXPECT_THAT(floats(run.after[1]).subspan(1), testing::ElementsAre(-1, 1));
}

TEST(OptimizerKernels, FindInfinityAndNanInAnyTensor) {
  const HostTensor fine = tensor({5}, {1, -2, 3e38F, 0, 1e-40F});
  EXPECT_EQ(integer(run_own(layers::FoundInf(), fine, fine).out[0]), 0);
  for (const float bad : {nan_value, infinity, -infinity}) {
    for (std::size_t place = 0; place < 5; ++place) {
      const HostTensor other = copy_of(fine.view());
      other.view().as<float>()[place] = bad;
      EXPECT_EQ(integer(run_own(layers::FoundInf(), fine, other).out[0]), 1) << bad << place;
    }
  }
}

TEST(OptimizerKernels, AdvanceTheLossScale) {
  const auto after = [](float count, std::int32_t found) {
    const OpRun run = run_own(layers::AdvanceLossScale(3), tensor({}, {8}), tensor({}, {count}),
                              tensor<std::int32_t>({}, {found}));
    return std::vector{floats(run.after[0])[0], floats(run.after[1])[0]};
  };
  EXPECT_THAT(after(2, 0), testing::ElementsAre(8, 3));
  EXPECT_THAT(after(3, 0), testing::ElementsAre(16, 0));
  EXPECT_THAT(after(2, 1), testing::ElementsAre(4, 0));
}

TEST(OptimizerKernels, AdvanceThePowersOfAdamUnlessInfWasFound) {
  const layers::AdvanceAdam op(0.5, 0.25);
  const auto after = [&](std::int32_t found) {
    const OpRun run =
        run_own(op, tensor({}, {1}), tensor({}, {0.5F}), tensor<std::int32_t>({}, {found}));
    return std::vector{floats(run.after[0])[0], floats(run.after[1])[0]};
  };
  EXPECT_THAT(after(0), testing::ElementsAre(0.5F, 0.125F));
  EXPECT_THAT(after(1), testing::ElementsAre(1, 0.5F));
  const OpRun plain = run_own(op, tensor({}, {1}), tensor({}, {0.5F}));
  EXPECT_EQ(floats(plain.after[1])[0], 0.125F);
}

TEST(LossKernels, DoNotOverflow) {
  const OpRun run = run_own(layers::SoftmaxCrossEntropy(), tensor({2, 2}, {1000, 0, -1000, 0}),
                            tensor<std::int32_t>({2}, {0, 1}));
  EXPECT_EQ(floats(run.out[0])[0], 0);
  EXPECT_THAT(floats(run.out[1]), testing::ElementsAre(1, 0, 0, 1));
}

TEST(LossKernels, GiveNanForALabelOutsideOfTheClasses) {
  for (const std::int32_t label : {-1, 2}) {
    const HostTensor logits = tensor({1, 2}, {1, 2});
    const HostTensor labels = tensor<std::int32_t>({1}, {label});
    EXPECT_TRUE(
        std::isnan(floats(run_own(layers::SoftmaxCrossEntropy(), logits, labels).out[0])[0]));
    EXPECT_EQ(integer(run_own(layers::Accuracy(), logits, labels).out[1]), 0);
  }
}

TEST(LossKernels, CountTiesAsHitsAndNanRowsAsMisses) {
  const HostTensor logits =
      tensor({3, 6}, {1, 1, 0, 0, 0, 0, 9, 8, 7, 6, 5, 4, 0, nan_value, 0, 0, 0, 0});
  const OpRun run = run_own(layers::Accuracy(), logits, tensor<std::int32_t>({3}, {1, 4, 0}));
  EXPECT_EQ(integer(run.out[0]), 1);
  EXPECT_EQ(integer(run.out[1]), 2);
}

}  // namespace
}  // namespace cnn::tests
