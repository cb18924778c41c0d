#include "layers/host_variable.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <gtest/gtest.h>
#include <memory>
#include <vector>

#include "layers/operands.h"
#include "layers/optimizer.h"
#include "runtime/cpu/device.h"
#include "runtime/error.h"
#include "tests/support/host_tensor.h"

namespace cnn::layers {
namespace {

using tests::HostTensor;

TensorDesc floats(Shape shape) { return described(shape, DataType::f32); }

// Returns a tensor whose elements rise from `first` on.
HostTensor rising(const TensorDesc& desc, float first) {
  HostTensor tensor(desc);
  for (float& value : tensor.view().as<float>()) {
    value = first;
    first += 0.25F;
  }
  return tensor;
}

std::vector<float> values_of(const HostTensor& tensor) {
  const std::span<float> values = tensor.view().as<float>();
  return {values.begin(), values.end()};
}

TEST(LoadVariable, TakesTheWholeOrASlice) {
  const std::vector<TensorDesc> in{floats({3, 5})};
  EXPECT_EQ(LoadVariable().infer(in).front(), in[0]);
  EXPECT_EQ(LoadVariable(5, {10}).infer(in).front(), floats({10}));
  EXPECT_THROW((void)LoadVariable(6, {10}).infer(in), Error);
  const HostTensor variable = rising(in[0], 1), slice(floats({10}));
  LoadVariable(5, {10}).reference(std::array{variable.view()}, std::array{slice.view()});
  EXPECT_EQ(values_of(slice).front(), 2.25F);
  EXPECT_EQ(values_of(slice).back(), 4.5F);
}

TEST(StoreVariable, WritesItsSliceAlone) {
  const HostTensor variable = rising(floats({3, 5}), 1), slice = rising(floats({4}), 100);
  const std::vector<TensorDesc> in{slice.desc(), variable.desc()};
  EXPECT_TRUE(StoreVariable(2).infer(in).empty());
  EXPECT_THROW((void)StoreVariable(12).infer(in), Error);
  StoreVariable(2).reference(std::array{slice.view(), variable.view()}, {});
  EXPECT_EQ(values_of(variable)[1], 1.25F);
  EXPECT_EQ(values_of(variable)[2], 100.0F);
  EXPECT_EQ(values_of(variable)[5], 100.75F);
  EXPECT_EQ(values_of(variable)[6], 2.5F);
}

// Copies of a stream, as any device runs them.
TEST(StoreVariable, IsACopyOfAStreamLikeLoadVariable) {
  KernelTable table;
  add_host_variable_rows(table);
  CpuDevice device;
  const std::unique_ptr<Stream> stream = device.make_stream(Lane::copy_in);
  const HostTensor variable = rising(floats({30}), 1), slice(floats({8}));
  const LoadVariable load(4, {8});
  const Signature loaded{.in = {variable.desc()}, .out = {slice.desc()}};
  ASSERT_TRUE(table.describe(load, loaded).has_value());
  const Operands in{.in = {variable.view()}, .out = {slice.view()}, .workspace = {}};
  table.make(load, loaded)->run(*stream, in);
  const StoreVariable store(20);
  const Signature stored{.in = {slice.desc(), variable.desc()}, .out = {}};
  const Operands out{.in = {slice.view(), variable.view()}, .out = {}, .workspace = {}};
  table.make(store, stored)->run(*stream, out);
  stream->synchronize();
  EXPECT_EQ(values_of(variable)[19], 5.75F);
  EXPECT_EQ(values_of(variable)[20], 2.0F);
  EXPECT_EQ(values_of(variable)[27], 3.75F);
  EXPECT_EQ(values_of(variable)[28], 8.0F);
}

UpdateAttributes attributes_of(Rule rule) {
  return {.rule = rule, .weight_decay = 0.125, .clip = 0.75, .decay = {true}};
}

TEST(UpdateSlice, GivesTheBitsOfTheUpdateOfTheWhole) {
  constexpr std::int64_t elements = 3 * elements_per_sum + 100, first = 2 * elements_per_sum;
  for (const RuleRow& row : rules()) {
    const UpdateAttributes attributes = attributes_of(row.rule);
    std::vector<HostTensor> head;
    for (int i = 0; i < (row.has_powers ? 3 : 1); ++i) {
      head.push_back(rising(floats({}), 0.5F));
    }
    // The parameter, its gradient, then its slots.
    const auto operands = [&] {
      std::vector<HostTensor> made;
      for (std::size_t i = 0; i < 2 + row.slots.size(); ++i) {
        made.push_back(rising(floats({elements}), static_cast<float>(i + 1)));
      }
      return made;
    };
    const auto views = [&](const std::vector<HostTensor>& tensors) {
      std::vector<TensorView> all;
      std::ranges::transform(head, std::back_inserter(all), &HostTensor::view);
      std::ranges::transform(tensors, std::back_inserter(all), &HostTensor::view);
      return all;
    };
    const std::vector<HostTensor> whole = operands(), parts = operands();
    const HostTensor half(floats({1})), sum_of_parts(floats({1}));
    Update(attributes, 1).reference(views(whole), std::array{half.view()});
    std::vector<HostTensor> sums;
    for (const auto& [begin, end] : {std::pair(std::int64_t{0}, first), {first, elements}}) {
      std::vector<TensorView> in = views(parts);
      const UpdateSlice slice(attributes, begin);
      for (std::size_t i = slice.slice_index(); i < in.size(); ++i) {
        if (i != slice.slice_index() + 1) {
          in[i].desc = floats({end - begin});
          in[i].data += begin * static_cast<std::int64_t>(sizeof(float));
        }
      }
      std::vector<TensorDesc> descs;
      std::ranges::transform(in, std::back_inserter(descs), &TensorView::desc);
      sums.emplace_back(slice.infer(descs).front());
      slice.reference(in, std::array{sums.back().view()});
    }
    for (std::size_t i = 0; i < whole.size(); ++i) {
      EXPECT_EQ(values_of(whole[i]), values_of(parts[i])) << row.name << " " << i;
    }
    HalfSumOfSlices().reference(std::array{sums[0].view(), sums[1].view()},
                                std::array{sum_of_parts.view()});
    EXPECT_FLOAT_EQ(values_of(sum_of_parts)[0], values_of(half)[0]) << row.name;
    EXPECT_GT(values_of(half)[0], 0);
  }
}

TEST(UpdateSlice, RefusesCopiesAndAutomaticLossScale) {
  const std::vector<TensorDesc> in{floats({}), floats({8}), floats({10})};
  UpdateAttributes attributes = attributes_of(Rule::sgd);
  EXPECT_EQ(UpdateSlice(attributes, 2).infer(in).front(), described({8}, DataType::u8));
  EXPECT_THROW((void)UpdateSlice(attributes, 3).infer(in), Error);
  attributes.automatic_loss_scale = true;
  EXPECT_THROW((void)UpdateSlice(attributes, 2).infer(in), Error);
}

TEST(HostVariable, MovesTheBytesOfItsSlices) {
  const std::vector<TensorDesc> variable{floats({100, 100})}, slice{floats({1000})};
  EXPECT_EQ(moved_bytes(LoadVariable(), variable, variable), 40'000);
  EXPECT_EQ(moved_bytes(LoadVariable(0, {1000}), variable, slice), 4'000);
  EXPECT_EQ(moved_bytes(StoreVariable(0), std::vector{slice[0], variable[0]}, {}), 4'000);
  const UpdateSlice momentum(attributes_of(Rule::momentum), 0);
  EXPECT_EQ(moved_bytes(momentum, std::vector{floats({}), slice[0], variable[0], slice[0]}, {}),
            5 * 4'000);
  EXPECT_FALSE(moved_bytes(SumInOrder(), slice, {}).has_value());
}

TEST(HostVariable, IsCompleteWithItsLastSlice) {
  const std::vector<TensorDesc> in{floats({4}), floats({10})};
  EXPECT_FALSE(completes_operand(StoreVariable(0), in));
  EXPECT_TRUE(completes_operand(StoreVariable(6), in));
  EXPECT_FALSE(completes_operand(UpdateSlice(attributes_of(Rule::sgd), 0), in));
  EXPECT_TRUE(completes_operand(SumInOrder(), in));
}

}  // namespace
}  // namespace cnn::layers
