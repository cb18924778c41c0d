#include "layers/optimizer.h"

#include <cmath>
#include <cstring>
#include <gtest/gtest.h>

#include "tests/layers/cpu/own_kernels.h"
#include "tests/support/numeric.h"
#include "tests/support/op_runner.h"

namespace cnn::tests {
namespace {

using layers::Rule;
using layers::Update;
using layers::UpdateAttributes;

class Optimizers : public testing::TestWithParam<const layers::cpu::Loops*> {
 protected:
  static OpRun run(const Op& op, std::span<const HostTensor> in) {
    Signature request;
    std::vector<TensorView> views;
    for (const HostTensor& tensor : in) {
      request.in.push_back(tensor.desc());
      views.push_back(tensor.view());
    }
    request.out = op.infer(request.in);
    return run_op(own_kernels(*GetParam()), op, request, views).value();
  }

  // Returns all operands of an Update for parameters of these sizes.
  static std::vector<HostTensor> operands(const Update& op, std::span<const std::int64_t> sizes) {
    std::vector<HostTensor> in;
    in.push_back(constant({}, 0.125F));
    if (op.attributes.automatic_loss_scale) {
      in.push_back(constant({}, 64));
      in.emplace_back(TensorDesc{.shape = {}, .type = DataType::i32});
      in.back().view().as<std::int32_t>()[0] = 0;
    }
    if (layers::row_of(op.attributes.rule).has_powers) {
      in.push_back(constant({}, 0.81F));
      in.push_back(constant({}, 0.998F));
    }
    std::uint64_t seed = 1;
    for (std::size_t kind = 0; kind < 2 + op.slots(); ++kind) {
      for (const std::int64_t size : sizes) {
        in.push_back(draws({size}, DataType::f32, ++seed));
        for (float& value : in.back().view().as<float>()) {
          value = kind >= 2 ? std::abs(value) : value;  // second moments are positive
        }
      }
    }
    return in;
  }
};

constexpr std::array<std::int64_t, 5> sizes{1, 40000, 7, 16384, 65537};

TEST_P(Optimizers, UpdateLikeTheReferenceForEveryRule) {
  for (const layers::RuleRow& row : layers::rules()) {
    for (const bool automatic : {false, true}) {
      UpdateAttributes a{.rule = row.rule, .weight_decay = 0.01, .clip = 0.5, .loss_scale = 8};
      a.automatic_loss_scale = automatic;
      a.decay = {true, false, true, true, false};
      const Update op(a, sizes.size());
      std::vector<HostTensor> in = operands(op, sizes);
      OpRun result = run(op, in);
      std::vector<TensorView> views;
      views.reserve(in.size());
      for (const HostTensor& tensor : in) {
        views.push_back(tensor.view());
      }
      const HostTensor squares(TensorDesc{.shape = {std::int64_t{sizes.size()}}});
      op.reference(views, std::vector{squares.view()});
      for (std::size_t i = 0; i < sizes.size(); ++i) {
        EXPECT_FLOAT_EQ(result.out[0].view().as<float>()[i], squares.view().as<float>()[i]);
      }
      for (std::size_t i = 0; i < in.size(); ++i) {
        const auto text = difference(in[i].view(), result.after[i].view(), 2e-6);
        EXPECT_FALSE(text.has_value()) << row.name << ", input " << i << ": " << *text;
      }
    }
  }
}

TEST_P(Optimizers, TakeOneStepOfMomentumByHand) {
  UpdateAttributes a{
      .rule = Rule::momentum, .momentum = 0.5, .weight_decay = 0.25, .loss_scale = 2};
  a.decay = {true};
  std::vector<HostTensor> in;
  in.push_back(constant({}, 0.5F));  // learning rate
  in.push_back(constant({3}, 4));    // w
  in.push_back(constant({3}, 6));    // gradient: 6 / 2 + 0.25 * 4 = 4
  in.push_back(constant({3}, 2));    // a = 0.5 * 2 + 4 = 5
  const OpRun result = run(Update(a, 1), in);
  EXPECT_EQ(result.out[0].view().as<float>()[0], 24);  // 3 * 4^2 / 2
  EXPECT_EQ(result.after[3].view().as<float>()[1], 5);
  EXPECT_EQ(result.after[1].view().as<float>()[2], 4 - 2 - 1.25F);  // lr g + lr m a
}

TEST_P(Optimizers, LeaveEverythingAfterAnOverflowButReportTheNorm) {
  UpdateAttributes a{.rule = Rule::adam, .weight_decay = 0.25};
  a.automatic_loss_scale = true;
  a.decay = {true};
  const Update op(a, 1);
  std::vector<HostTensor> in = operands(op, std::vector<std::int64_t>{100});
  in[2].view().as<std::int32_t>()[0] = 1;
  in[op.first_parameter()] = constant({100}, 2);
  const OpRun result = run(op, in);
  for (std::size_t i = 0; i < in.size(); ++i) {
    EXPECT_EQ(std::memcmp(in[i].view().data, result.after[i].view().data, in[i].desc().bytes()), 0);
  }
  EXPECT_EQ(result.out[0].view().as<float>()[0], 200);
}

TEST_P(Optimizers, DoNotDependOnTheNumberOfThreads) {
  UpdateAttributes a{.rule = Rule::momentum, .weight_decay = 0.25};
  a.decay.assign(sizes.size(), true);
  const Update op(a, sizes.size());
  const std::vector<HostTensor> in = operands(op, sizes);
  std::vector<OpRun> runs;
  for (const int threads : {1, 2, 5}) {
    const Threads team(threads);
    runs.push_back(run(op, in));
  }
  EXPECT_EQ(runs[0].out[0].view().as<float>()[0], runs[1].out[0].view().as<float>()[0]);
  EXPECT_EQ(runs[0].out[0].view().as<float>()[0], runs[2].out[0].view().as<float>()[0]);
  for (std::size_t i = 0; i < in.size(); ++i) {
    const TensorView one = runs[0].after[i].view();
    EXPECT_EQ(std::memcmp(one.data, runs[2].after[i].view().data, one.desc.bytes()), 0);
  }
}

TEST_P(Optimizers, FindAnInfinityOrNanWhereverItStands) {
  std::vector<HostTensor> in;
  in.reserve(sizes.size());
  for (const std::int64_t size : sizes) {
    in.push_back(draws({size}, DataType::f32, 1));
  }
  in[2].view().as<float>()[6] = 3e38F;
  EXPECT_EQ(run(layers::FoundInf(), in).out[0].view().as<std::int32_t>()[0], 0);
  for (const float bad : {INFINITY, -INFINITY, std::nanf("")}) {
    for (const auto& [tensor, element] :
         std::vector<std::pair<std::size_t, std::size_t>>{{0, 0}, {1, 39999}, {2, 6}, {4, 65536}}) {
      const float before = std::exchange(in[tensor].view().as<float>()[element], bad);
      EXPECT_EQ(run(layers::FoundInf(), in).out[0].view().as<std::int32_t>()[0], 1);
      in[tensor].view().as<float>()[element] = before;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Own, Optimizers, testing::ValuesIn(runnable_loops()),
                         [](const auto& row) { return row.param->name; });

}  // namespace
}  // namespace cnn::tests
