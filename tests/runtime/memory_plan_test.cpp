#include "runtime/memory_plan.h"

#include <chrono>
#include <gtest/gtest.h>
#include <random>

#include "runtime/program.h"
#include "tests/support/swapping_step.h"
#include "tests/support/test_ops.h"
#include "tests/support/test_step.h"

namespace cnn {
namespace {

using tests::Combine;
using tests::floats;
using tests::Opaque;
using tests::Relu;
using tests::Scale;
using tests::SumAndDifference;

constexpr tests::TestOpOptions over_input{.in_place = true};

MemoryPlan plan_of(const Graph& graph, const std::vector<std::size_t>& workspace = {}) {
  const std::vector<std::size_t> none(graph.nodes().size());
  return plan_memory(graph, make_schedule(graph), workspace.empty() ? none : workspace);
}

std::size_t offset_of(const MemoryPlan& plan, Value value) {
  for (const Block& block : plan.blocks) {
    if (block.owner == std::variant<TensorId, NodeId>(value.id)) {
      return block.offset;
    }
  }
  ADD_FAILURE() << "no block";
  return 0;
}

TEST(MemoryPlan, ReusesABlockOnlyAfterItsLastReader) {
  Graph graph;
  const Value x = graph.state("x", floats(16), {}, false);
  const Value a = emit(Scale(1), {x});
  const Value b = emit(Scale(2), {a});
  const Value c = emit(Scale(3), {b});
  const MemoryPlan plan = plan_of(graph);
  EXPECT_EQ(plan.device_bytes, 128U) << "a and b, then b and c";
  EXPECT_NE(offset_of(plan, a), offset_of(plan, b));
  EXPECT_EQ(offset_of(plan, a), offset_of(plan, c));
}

TEST(MemoryPlan, AlignsSizesTo64Bytes) {
  Graph graph;
  const Value x = graph.state("x", floats(1), {}, false);
  const Value a = emit(Opaque({floats(17)}), {x});
  emit(Opaque({floats(1)}), {a});
  EXPECT_EQ(plan_of(graph).device_bytes, 128U + 4U);  // the last block is not padded
}

TEST(MemoryPlan, WritesInPlaceWhereTheOpPermitsIt) {
  Graph graph;
  const Value x = graph.state("x", floats(16), {}, false);
  const Value a = emit(Scale(1), {x});
  const Value b = emit(Relu(over_input), {a});
  const Value c = emit(Relu(over_input), {b});
  const MemoryPlan plan = plan_of(graph);
  EXPECT_EQ(plan.device_bytes, 64U);
  EXPECT_EQ(plan.lower_bound_bytes, 64U);
  EXPECT_EQ(offset_of(plan, a), offset_of(plan, b));
  EXPECT_EQ(offset_of(plan, b), offset_of(plan, c));
}

TEST(MemoryPlan, WritesEachOutputInThePlaceOfAnInputOfItsOwn) {
  const auto graph = std::make_shared<Graph>();
  const Value x = graph->state("x", floats(16), {}, false);
  const std::vector<Value> in{emit(Scale(1), {x}), emit(Scale(2), {x})};
  const std::vector<Value> out = emit_all(SumAndDifference(over_input), std::span<const Value>(in));
  graph->output("sum", out[0]);
  graph->output("difference", out[1]);
  const MemoryPlan plan = plan_of(*graph);
  EXPECT_EQ(plan.device_bytes, 128U);
  EXPECT_EQ(offset_of(plan, in[0]), offset_of(plan, out[0]));
  EXPECT_EQ(offset_of(plan, in[1]), offset_of(plan, out[1]));
}

TEST(MemoryPlan, LetsOneOutputHaveTheBytesOfAnInput) {
  Graph graph;
  const Value x = graph.state("x", floats(16), {}, false);
  const std::vector<Value> in{emit(Scale(1), {x}), x};
  const std::vector<Value> out = emit_all(SumAndDifference(over_input), std::span<const Value>(in));
  const MemoryPlan plan = plan_of(graph);
  EXPECT_EQ(plan.device_bytes, 128U);
  EXPECT_EQ(offset_of(plan, in[0]), offset_of(plan, out[0]));
  EXPECT_NE(offset_of(plan, in[0]), offset_of(plan, out[1]));
}

TEST(MemoryPlan, NeverOverwritesAVariable) {
  Graph graph;
  const Value x = graph.state("x", floats(16), {}, false);
  emit(Relu(over_input), {x});
  const MemoryPlan plan = plan_of(graph);
  EXPECT_EQ(plan.blocks.size(), 1U);
  EXPECT_EQ(plan.device_bytes, 64U);
}

TEST(MemoryPlan, NeverOverwritesAnInputThatIsReadLater) {
  Graph graph;
  const Value x = graph.state("x", floats(16), {}, false);
  const Value a = emit(Scale(1), {x});
  const Value b = emit(Relu(over_input), {a});
  emit(Combine(), {b, a});
  const MemoryPlan plan = plan_of(graph);
  EXPECT_NE(offset_of(plan, a), offset_of(plan, b));
}

TEST(MemoryPlan, NeverOverwritesAnInputThatLeavesLater) {
  Graph graph;
  const Value x = graph.state("x", floats(16), {}, false);
  const Value a = emit(Scale(1), {x});
  const Value b = emit(Relu(over_input), {a});
  graph.output("a", a);
  const MemoryPlan plan = plan_of(graph);
  EXPECT_NE(offset_of(plan, a), offset_of(plan, b));
}

TEST(MemoryPlan, NeverOverwritesAnInputThatIsGivenTwice) {
  Graph graph;
  const Value x = graph.state("x", floats(16), {}, false);
  const Value a = emit(Scale(1), {x});
  const Value b = emit(Combine(over_input), {a, a});
  const MemoryPlan plan = plan_of(graph);
  EXPECT_NE(offset_of(plan, a), offset_of(plan, b));
}

TEST(MemoryPlan, NeverOverwritesAnInputOfAnotherSize) {
  Graph graph;
  const Value x = graph.state("x", floats(16), {}, false);
  const Value a = emit(Scale(1), {x});
  const Value b = emit(Opaque({floats(15)}, over_input), {a});
  const MemoryPlan plan = plan_of(graph);
  EXPECT_NE(offset_of(plan, a), offset_of(plan, b));
}

TEST(MemoryPlan, HoldsTheWorkspaceOfTheRunningNode) {
  Graph graph;
  const Value x = graph.state("x", floats(16), {}, false);
  const Value a = emit(Scale(1), {x});
  emit(Scale(2), {a});
  const MemoryPlan plan = plan_of(graph, {1000, 0});
  EXPECT_EQ(plan.device_bytes, 1024U + 64U);
  EXPECT_EQ(plan.lower_bound_bytes, 1024U + 64U);
  const Block* workspace = BlockIndex(graph, plan).workspace(NodeId{0}, StepId{0});
  ASSERT_NE(workspace, nullptr);
  EXPECT_EQ(workspace->bytes, 1000U);
  EXPECT_EQ(BlockIndex(graph, plan).workspace(NodeId{1}, StepId{1}), nullptr);
}

TEST(MemoryPlan, GivesSwappedActivationsAPlaceOnTheHost) {
  Graph graph;
  const Value x = graph.input("x", floats(16));
  const Value a = emit(Scale(1), {x});
  const Value b = emit(Scale(2), {a});
  emit(Combine(), {b, a});
  graph.output("b", b);
  Schedule schedule;
  for (const Action& action :
       {Action{Fetch{x.id}}, Action{Compute{NodeId{0}}}, Action{Compute{NodeId{1}}},
        Action{Offload{a.id}}, Action{Offload{x.id}}, Action{Fetch{a.id}},
        Action{Compute{NodeId{2}}}, Action{Offload{b.id}}}) {
    schedule.steps.push_back({.action = action});
  }
  const std::vector<std::size_t> none(3);
  const MemoryPlan plan = plan_memory(graph, schedule, none);
  ASSERT_EQ(plan.host_blocks.size(), 1U) << "inputs and outputs are not part of the host arena";
  EXPECT_EQ(plan.host_blocks[0].owner, (std::variant<TensorId, NodeId>(a.id)));
  EXPECT_EQ(plan.host_blocks[0].first, StepId{3});
  EXPECT_EQ(plan.host_blocks[0].last, StepId{5});
  EXPECT_EQ(plan.host_bytes, 64U);
  EXPECT_EQ(BlockIndex(graph, plan).host(a.id, StepId{4}), plan.host_blocks.data());
}

// A training graph with the structure of ResNet-50: four groups of bottleneck blocks. Each layer
// has data and weight gradients, statistics, workspaces and updates.
class ResidualNetwork {
 public:
  ResidualNetwork() {
    const int depths[] = {3, 4, 6, 3};
    std::int64_t channels = 64;
    std::int64_t size = 56;
    Value x =
        conv(graph_.state("images", floats(std::int64_t{32} * 3 * 224 * 224), {}, false), 64, size);
    for (const int depth : depths) {
      for (int block = 0; block < depth; ++block) {
        Value y = conv(x, channels, size);
        y = conv(y, channels, size);
        y = conv(y, 4 * channels, size);
        const Value shortcut = block == 0 ? conv(x, 4 * channels, size) : x;
        x = add(y, shortcut);
      }
      channels *= 2;
      size /= 2;
    }
    backward(x);
  }

  const Graph& graph() const { return graph_; }
  std::vector<std::size_t> workspace() const {
    std::mt19937 random(5);
    std::vector<std::size_t> bytes(graph_.nodes().size());
    for (std::size_t& b : bytes) {
      b = random() % 3 == 0 ? (random() % 8) << 20U : 0;
    }
    return bytes;
  }

 private:
  struct Layer {
    Value in, raw, statistics, out, weight;
    std::optional<Value> shortcut;  // the block ends in an addition, not in a convolution
  };

  // Appends a convolution, a batch norm and a ReLU.
  Value conv(Value in, std::int64_t channels, std::int64_t size) {
    const Value weight =
        graph_.parameter("w" + std::to_string(layers_.size()), floats(channels * 64 * 9), {});
    const TensorDesc desc = floats(32 * channels * size * size);
    const Value raw = emit(Opaque({desc}), {in, weight});
    const std::vector<Value> just_raw{raw};
    const auto normal = emit_all(Opaque({desc, floats(channels), floats(channels)}),
                                 std::span<const Value>(just_raw));
    const Value out = emit(Opaque({desc}, over_input), {normal[0]});
    layers_.push_back({in, raw, normal[1], out, weight, {}});
    return out;
  }

  Value add(Value a, Value b) {
    const Value out = emit(Opaque({a.desc()}, over_input), {a, b});
    layers_.push_back({a, a, a, out, a, b});
    return out;
  }

  void accumulate(Value at, Value gradient) {
    for (auto& [value, sum] : gradients_) {
      if (value == at) {
        sum = emit(Opaque({sum.desc()}, over_input), {sum, gradient});
        return;
      }
    }
    gradients_.emplace_back(at, gradient);
  }

  Value gradient_of(Value at) const {
    for (const auto& [value, sum] : gradients_) {
      if (value == at) {
        return sum;
      }
    }
    return at;
  }

  void backward(Value last) {
    accumulate(last, emit(Scale(1), {last}));
    for (std::size_t l = layers_.size(); l-- > 0;) {
      const Layer& layer = layers_[l];
      Value g = gradient_of(layer.out);
      if (layer.shortcut) {
        accumulate(layer.in, g);
        accumulate(*layer.shortcut, g);
        continue;
      }
      g = emit(Opaque({g.desc()}, over_input), {g, layer.out});
      g = emit(Opaque({g.desc()}, over_input), {g, layer.raw, layer.statistics});
      const Value gradient = emit(Opaque({layer.weight.desc()}), {layer.in, g});
      if (l > 0) {
        accumulate(layer.in, emit(Opaque({layer.in.desc()}), {g, layer.weight}));
      }
      emit(tests::Descend(), {layer.weight, gradient});
    }
  }

  Graph graph_;
  std::vector<Layer> layers_;
  std::vector<std::pair<Value, Value>> gradients_;
};

TEST(MemoryPlan, IsWithinTwoPercentOfTheBoundOnAResidualNetwork) {
  const ResidualNetwork network;
  EXPECT_GT(network.graph().nodes().size(), 350U);
  const MemoryPlan plan = plan_of(network.graph(), network.workspace());
  EXPECT_GT(plan.lower_bound_bytes, std::size_t{1} << 30U);
  EXPECT_LE(static_cast<double>(plan.device_bytes),
            1.015 * static_cast<double>(plan.lower_bound_bytes));
}

TEST(PeakMemory, IsTheLowerBoundOfThePlan) {
  const ResidualNetwork network;
  const Schedule schedule = make_schedule(network.graph());
  const std::vector<std::size_t> workspace = network.workspace();
  EXPECT_EQ(peak_memory(network.graph(), schedule, workspace).device_bytes,
            plan_memory(network.graph(), schedule, workspace).lower_bound_bytes);
}

TEST(PeakMemory, CountsSwappedTensorsOnTheHost) {
  Graph graph;
  const Value x = graph.state("x", floats(16), {}, false);
  const Value a = emit(Scale(1), {x});
  const Value b = emit(Scale(2), {x});
  emit(Combine(), {a, b});
  const Schedule schedule{{{.action = Compute{NodeId{0}}},
                           {.action = Offload{a.id}, .lane = Lane::copy_out},
                           {.action = Compute{NodeId{1}}},
                           {.action = Fetch{a.id}, .lane = Lane::copy_in},
                           {.action = Compute{NodeId{2}}}}};
  const PeakMemory peak = peak_memory(graph, schedule, std::vector<std::size_t>(3));
  EXPECT_EQ(peak.device_bytes, 3 * 64U);
  EXPECT_EQ(peak.host_bytes, 64U);
}

TEST(PlanMemory, FreesTheHostBytesOfAStoredTensorUntilItsLoad) {
  const StepPlan plan = tests::storing_plan();
  const MemoryPlan& memory = plan.memory;
  ASSERT_EQ(memory.host_blocks.size(), 2U);
  EXPECT_EQ(memory.host_blocks[0].first, StepId{3}) << "offload";
  EXPECT_EQ(memory.host_blocks[0].last, StepId{4}) << "store";
  EXPECT_EQ(memory.host_blocks[1].first, StepId{6}) << "load";
  EXPECT_EQ(memory.host_blocks[1].last, StepId{7}) << "fetch";
  EXPECT_EQ(memory.host_bytes, disk_alignment) << "both are the same bytes";
  ASSERT_EQ(memory.disk_blocks.size(), 1U);
  EXPECT_EQ(memory.disk_blocks[0].bytes, disk_alignment) << "256 bytes, rounded up";
  EXPECT_EQ(memory.disk_bytes, disk_alignment);
}

TEST(PlanMemory, KeepsTheHostBytesOfAStoreUntilTheStepThatWaitsForIt) {
  const StepPlan plan = tests::storing_plan();
  Schedule schedule = plan.schedule;
  for (Step& step : schedule.steps) {
    step.after.clear();
  }
  schedule.steps[6].after = {StepId{4}};  // the load waits for the store
  const std::vector<std::size_t> workspace(plan.graph->nodes().size());
  const MemoryPlan memory = plan_memory(*plan.graph, schedule, workspace);
  EXPECT_EQ(memory.host_blocks[0].last, StepId{5});
}

TEST(PlanMemory, GivesEachStoredTensorItsOwnPlaceInTheFile) {
  Graph graph;
  const Value x = graph.state("x", floats(2000), {}, false);
  const Value a = emit(Scale(1), {x});
  const Value b = emit(Scale(2), {x});
  emit(Combine(), {a, b});
  const Schedule schedule{{{.action = Compute{NodeId{0}}},
                           {.action = Offload{a.id}, .lane = Lane::copy_out},
                           {.action = Store{a.id}, .lane = Lane::disk},
                           {.action = Compute{NodeId{1}}},
                           {.action = Offload{b.id}, .lane = Lane::copy_out},
                           {.action = Store{b.id}, .lane = Lane::disk},
                           {.action = Load{a.id}, .lane = Lane::disk},
                           {.action = Fetch{a.id}, .lane = Lane::copy_in},
                           {.action = Load{b.id}, .lane = Lane::disk},
                           {.action = Fetch{b.id}, .lane = Lane::copy_in},
                           {.action = Compute{NodeId{2}}}}};
  const MemoryPlan memory = plan_memory(graph, schedule, std::vector<std::size_t>(3));
  EXPECT_EQ(memory.disk_bytes, 4 * disk_alignment);
  EXPECT_EQ(memory.host_bytes, 2 * disk_alignment) << "one tensor is on the host at a time";
  const BlockIndex index(graph, memory);
  EXPECT_EQ(index.disk(a.id)->offset, 0U);
  EXPECT_EQ(index.disk(b.id)->offset, 2 * disk_alignment);
  EXPECT_EQ(index.disk(x.id), nullptr);
  EXPECT_EQ(peak_memory(graph, schedule, std::vector<std::size_t>(3)).host_bytes,
            memory.host_bytes);
}

TEST(HostArenaBytes, AreThoseOfTheWholePlan) {
  for (const StepPlan& plan :
       {tests::swapping_plan(), tests::swapping_plan(3000), tests::storing_plan(3000)}) {
    EXPECT_EQ(host_arena_bytes(*plan.graph, plan.schedule), plan.memory.host_bytes);
  }
}

}  // namespace
}  // namespace cnn
