#include "layers/all_reduce.h"

#include <algorithm>
#include <cstddef>
#include <gtest/gtest.h>
#include <numeric>
#include <string>
#include <vector>

#include "layers/cpu/kernels.h"
#include "layers/elementwise.h"
#include "layers/operands.h"
#include "layers/optimizer.h"
#include "layers/passes/pipeline.h"
#include "runtime/cpu/device.h"
#include "runtime/cpu/reference_kernel.h"
#include "runtime/executor.h"
#include "runtime/program.h"
#include "tests/support/error_of.h"

namespace cnn::layers {
namespace {

using Sizes = std::vector<std::size_t>;

TEST(Buckets, AreCutWhereTheyAreFull) {
  const BucketSizes sizes{.first = 10, .others = 40, .last = 10};
  EXPECT_EQ(cut_buckets(Sizes{}, sizes), Sizes{});
  EXPECT_EQ(cut_buckets(Sizes{500}, sizes), Sizes{1});
  EXPECT_EQ(cut_buckets(Sizes{3, 3, 3}, sizes), Sizes{3});
  EXPECT_EQ(cut_buckets(Sizes{6, 4, 20, 20, 1, 30, 5, 4}, sizes), (Sizes{2, 4, 6, 8}));
  EXPECT_EQ(cut_buckets(Sizes{100, 1, 100, 100}, sizes), (Sizes{1, 2, 3, 4}));
}

TEST(Buckets, AreOneWhereNothingOverlaps) {
  EXPECT_EQ(cut_buckets(Sizes{100, 1, 100, 3}, one_bucket()), Sizes{4});
}

TEST(Buckets, JoinSmallTensorsAndLeaveLargeOnesAlone) {
  const BucketSizes sizes{.small = 10, .joined = 3};
  EXPECT_EQ(cut_buckets(Sizes{1, 10, 11, 2, 12, 13, 1, 1, 1, 1}, sizes),
            (Sizes{2, 3, 4, 5, 6, 9, 10}));
  EXPECT_EQ(cut_buckets(Sizes{1}, sizes), Sizes{1});
}

// These are tf_cnn_benchmarks' own test cases of packed small tensors; sizes count f32 elements.
TEST(Buckets, JoinWhatTheOriginalPacks) {
  const auto packed = [](const Sizes& elements, std::size_t limit) {
    Sizes bytes(elements.size());
    std::ranges::transform(elements, bytes.begin(), [](std::size_t n) { return 4 * n; });
    Sizes result;
    std::size_t begin = 0;
    for (const std::size_t end : cut_buckets(bytes, {.small = limit, .joined = 10})) {
      result.push_back(std::accumulate(&elements[begin], elements.data() + end, std::size_t{0}));
      begin = end;
    }
    return result;
  };
  EXPECT_EQ(packed({4, 4, 9, 9}, 12), (Sizes{4, 4, 9, 9}));
  EXPECT_EQ(packed({4, 4, 9, 9}, 16), (Sizes{8, 9, 9}));
  EXPECT_EQ(packed({4, 4, 9, 9}, 256), Sizes{26});
  EXPECT_EQ(packed({8, 9, 12, 125}, 40), (Sizes{17, 12, 125}));
  EXPECT_EQ(packed({125, 6, 5}, 40), (Sizes{125, 11}));
  EXPECT_EQ(packed({125, 6, 5, 7, 100}, 40), (Sizes{125, 18, 100}));
}

// A communicator of three ranks that all contribute the same values.
class EqualRanks final : public Communicator {
 public:
  int rank() const override { return 0; }
  int ranks() const override { return 3; }
  void all_reduce(std::size_t bucket, std::span<const std::span<float>> pieces,
                  float factor) override {
    buckets.push_back(bucket);
    for (const std::span<float>& piece : pieces) {
      for (float& value : piece) {
        value *= 3 * factor;
      }
    }
  }
  std::vector<std::size_t> buckets;
};

// A graph of parameters "w0", "w1" and so on, with elements[i] ones each. Each gradient is twice an
// input.
struct Network {
  Network(const Sizes& elements, const BucketSizes& sizes) {
    std::vector<Value> parameters, gradients;
    for (std::size_t i = 0; i < elements.size(); ++i) {
      const TensorDesc desc = described({static_cast<std::int64_t>(elements[i])}, DataType::f32);
      const std::string name = "w" + std::to_string(i);
      parameters.push_back(
          graph->parameter(name, desc, {.initializer = {Initializer::Kind::constant, 1, 0}}));
      gradients.push_back(emit(Scale(2), {graph->input("x" + std::to_string(i), desc)}));
    }
    append_exchange(gradients, sizes, 0.5F);
    OptimizerOptions options;
    options.update.rule = Rule::sgd;
    graph->output("l2", append_update(*graph, parameters, gradients, options));
  }
  std::size_t count(std::string_view op) const {
    std::size_t result = 0;
    for (const Node& node : graph->nodes()) {
      result += node.op->name() == op ? 1 : 0;
    }
    return result;
  }
  std::shared_ptr<Graph> graph = std::make_shared<Graph>();
};

TEST(Exchange, CutsParametersOnceForExchangeAndUpdate) {
  const Network network({16, 16, 16, 16, 16}, {.first = 64, .others = 128, .last = 64});
  EXPECT_EQ(network.count("all_reduce"), 4U);  // buckets of 1, 2, 1 and 1 tensors
  EXPECT_EQ(network.count("update"), 4U);
}

TEST(Exchange, IsAnErrorWithoutABackend) {
  const Network network({4}, {});
  KernelTable table;
  add_reference(table);
  EXPECT_NE(tests::error_of([&] { make_plan(network.graph, table); }).find("all_reduce"),
            std::string::npos);
}

TEST(Exchange, RunsInItsLaneBeforeTheUpdate) {
  const Network network({16, 16, 16}, {.first = 64, .others = 64, .last = 64});
  KernelTable table;
  add_reference(table);
  EqualRanks equal_ranks;
  cpu::add_exchange(table, equal_ranks);
  CpuDevice device;
  StepPlan plan = make_plan(network.graph, table);
  Variables variables(*network.graph);
  const Buffer storage = device.allocate(variables.bytes());
  variables.attach(storage.data());
  for (const Variable& variable : variables.all()) {
    for (float& value : variables.view(variable).as<float>()) {
      value = 1;
    }
  }
  const Buffer arena = device.allocate(plan.memory.device_bytes);
  Executor executor(make_program(std::move(plan), table), device, variables,
                    {arena.data(), arena.bytes()});
  std::vector<std::vector<float>> values(4, std::vector<float>(16, 1.0F));
  std::vector<TensorView> inputs;
  for (const TensorId id : network.graph->inputs()) {
    inputs.push_back(
        {network.graph->info(id).desc, reinterpret_cast<std::byte*>(values[inputs.size()].data())});
  }
  executor.run(inputs);
  EXPECT_EQ(equal_ranks.buckets, (Sizes{0, 1, 2}));
  for (const Variable& variable : variables.all()) {
    // The learning rate is 1.
    EXPECT_EQ(variables.view(variable).as<float>()[15], 1 - 2 * 3 * 0.5F);
  }
}

}  // namespace
}  // namespace cnn::layers
