// Tests the update with 16-bit copies from the layout pass to the kernel. Our CUDA kernels run on
// the emulated grid; reference loops stand in for the libraries.

#include "layers/passes/copies.h"

#include <gtest/gtest.h>
#include <memory>
#include <utility>

#include "layers/cuda/own_kernels.h"
#include "layers/operands.h"
#include "layers/optimizer.h"
#include "tests/layers/conformance.h"
#include "tests/layers/cuda_grid/device_table.h"
#include "tests/layers/trained_copies.h"
#include "tests/support/grid/on_grid.h"
#include "tests/support/literals.h"

namespace cnn::tests {
namespace {

// Each of three layers has a kernel and a bias.
TEST(GridCopies, TrainToTheBitsOfAConversionPerStep) {
  for (const DataType compute : {DataType::f16, DataType::bf16}) {
    check_training_with_copies(device_table(), Layout::nhwc, compute, 6);
  }
}

// Each parameter has two elements more than whole packs; the first parameter has no copy.
OpRun update_with_copies(layers::Rule rule, DataType type, grid::Order order) {
  layers::UpdateAttributes a;
  a.rule = rule;
  a.weight_decay = 0.25;
  a.decay = {true, true, false};
  a.copied = {1, 2};
  const layers::Update op(a, 3);
  std::vector<TensorDesc> descs(op.first_parameter(), layers::described({}, DataType::f32));
  for (std::size_t kind = 0; kind < 2 + op.slots(); ++kind) {
    for (const Shape& shape : {Shape{6}, Shape{10, 6, 3, 5}, Shape{8'194}}) {
      descs.push_back(layers::described(shape, DataType::f32));
    }
  }
  descs.push_back(layers::described({10, 6, 3, 5}, type));
  descs.push_back(layers::described({8'194}, type));
  std::vector<HostTensor> in;
  for (const TensorDesc& desc : descs) {
    in.emplace_back(plain(desc));
    float next = 0.3F;
    for (float& value : in.back().view().as<float>()) {
      value = next;
      next = next > 2 ? 0.1F : next * 1.01F;
    }
  }
  KernelTable table;
  layers::cuda::add_own_kernels(table);
  auto run = run_op(grid::in_order(std::move(table), order), op,
                    {.in = descs, .out = op.infer(descs)}, views_of(in));
  check(run.has_value(), "there is no kernel");
  return std::move(*run);
}

TEST(GridCopies, AreTheNewParametersRoundedInEveryOrder) {
  for (const DataType type : {DataType::f16, DataType::bf16}) {
    for (const layers::RuleRow& row : layers::rules()) {
      for (const grid::Order order : grid::all_orders()) {
        const OpRun run = update_with_copies(row.rule, type, order);
        const std::size_t parameter = row.has_powers ? 3 : 1;
        const std::size_t copy = run.after.size() - 2;
        for (const std::size_t i : {std::size_t{0}, std::size_t{1}}) {
          const HostTensor expected = copy_of(run.after[parameter + 1 + i].view());
          EXPECT_FALSE(equal_bytes(expected, run.before[parameter + 1 + i]));
          round_to(type, expected.view());
          EXPECT_TRUE(equal_bytes(expected, run.after[copy + i])) << row.name << to_string(order);
        }
      }
    }
  }
}

TEST(GridCopies, AreNotWrittenAfterAnOverflow) {
  layers::UpdateAttributes a;
  a.automatic_loss_scale = true;
  a.decay = {false};
  a.copied = {0};
  const layers::Update op(a, 1);
  const TensorDesc scalar = layers::described({}, DataType::f32);
  const TensorDesc three = layers::described({3}, DataType::f32);
  const std::vector<TensorDesc> descs{scalar, scalar, layers::described({}, DataType::i32),
                                      three,  three,  layers::described({3}, DataType::f16)};
  KernelTable table;
  layers::cuda::add_own_kernels(table);
  for (const std::int32_t found : {0, 1}) {
    const HostTensor rate = tensor({}, {1}), scale = tensor({}, {2});
    const HostTensor flag = tensor<std::int32_t>({}, {found});
    const HostTensor w = tensor({3}, {1, 2, 3}), g = tensor({3}, {2, 4, 6});
    const HostTensor copy = tensor({3}, {7, 8, 9});
    const auto run = run_op(
        table, op, {.in = descs, .out = op.infer(descs)},
        std::vector{rate.view(), scale.view(), flag.view(), w.view(), g.view(), copy.view()});
    ASSERT_TRUE(run);
    const HostTensor updated = tensor({3}, {0, 0, 0});  // w - 1 * g / 2
    EXPECT_TRUE(equal_bytes(run->after[5], found == 0 ? updated : copy)) << found;
  }
}

}  // namespace
}  // namespace cnn::tests
