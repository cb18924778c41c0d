#include "runtime/program.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <span>
#include <string>
#include <vector>

#include "runtime/cpu/reference_kernel.h"
#include "runtime/error.h"
#include "tests/support/error_of.h"
#include "tests/support/test_graphs.h"
#include "tests/support/test_ops.h"
#include "tests/support/test_step.h"

namespace cnn {
namespace {

using ::testing::HasSubstr;
using tests::Combine;
using tests::Descend;
using tests::error_of;
using tests::floats;
using tests::random_graph;
using tests::Relu;
using tests::Scale;
using tests::SumAndDifference;
using tests::test_kernels;
using tests::with_random_edits;

std::string error_of(const StepPlan& plan) {
  return error_of([&] { verify(plan); });
}

// x -> a -> b -> c, c leaves; w is updated with b.
StepPlan small_plan(std::size_t workspace = 0) {
  auto graph = std::make_shared<Graph>();
  const Value x = graph->input("x", floats(16));
  const Value w = graph->parameter("w", floats(16), {});
  const Value a = emit(Scale(2), {x});      // 0
  const Value b = emit(Combine(), {a, w});  // 1
  const Value c = emit(Combine(), {b, a});  // 2
  emit(Descend(), {w, b});                  // 3
  graph->output("c", c);
  return make_plan(graph, test_kernels({.workspace = workspace}));
}

Block& block_of(StepPlan& plan, std::uint32_t tensor) {
  for (Block& block : plan.memory.blocks) {
    if (block.owner == std::variant<TensorId, NodeId>(TensorId{tensor})) {
      return block;
    }
  }
  throw Error("no such block");
}

TEST(MakePlan, NamesTheOpThatNoKernelRuns) {
  auto graph = std::make_shared<Graph>();
  emit(Scale(2), {graph->input("x", floats(4))});
  EXPECT_EQ(error_of([&] { make_plan(graph, KernelTable()); }),
            "no kernel of this backend runs scale#0 on (f32[4] nchw) -> (f32[4] nchw)");
}

TEST(MakePlan, RefusesAGraphWhoseLayoutsAreNotSettled) {
  auto graph = std::make_shared<Graph>();
  emit(Relu(), {graph->input("x", {.shape = {1, 2, 3, 4}, .layout = Layout::nhwc})});
  KernelTable table;
  add_reference(table);
  EXPECT_THAT(error_of([&] { make_plan(graph, table); }), HasSubstr("assign layouts first"));
}

TEST(MakeProgram, MakesAKernelForEveryNode) {
  const Program program = make_program(small_plan(), test_kernels());
  EXPECT_EQ(program.kernels.size(), 4U);
}

TEST(Verify, AcceptsWhatThePlannersMake) { EXPECT_EQ(error_of(small_plan(100)), ""); }

TEST(Verify, FindsATensorThatIsUsedBeforeItIsThere) {
  StepPlan plan = small_plan();
  std::swap(plan.schedule.steps[1].action, plan.schedule.steps[2].action);
  EXPECT_THAT(error_of(plan), HasSubstr("uses scale#0, which is not on the device"));
}

TEST(Verify, FindsBlocksThatOverlap) {
  StepPlan plan = small_plan();
  block_of(plan, 3).offset = block_of(plan, 2).offset;  // b on a, which c still reads
  EXPECT_THAT(error_of(plan), HasSubstr("scale#0 and combine#1 share bytes in step"));
}

TEST(Verify, FindsTwoOutputsInThePlaceOfOneInput) {
  auto graph = std::make_shared<Graph>();
  const Value x = graph->input("x", floats(16));
  const Value y = graph->input("y", floats(16));
  const std::vector<Value> in{emit(Scale(1), {x}), emit(Scale(2), {y})};
  const std::vector<Value> out =
      emit_all(SumAndDifference({.in_place = true}), std::span<const Value>(in));
  graph->output("sum", out[0]);
  graph->output("difference", out[1]);
  StepPlan plan = make_plan(graph, test_kernels());
  EXPECT_EQ(error_of(plan), "");
  EXPECT_EQ(block_of(plan, 4).offset, block_of(plan, 2).offset);
  EXPECT_EQ(block_of(plan, 5).offset, block_of(plan, 3).offset);
  block_of(plan, 5).offset = block_of(plan, 4).offset;
  EXPECT_THAT(error_of(plan), HasSubstr("share bytes in step"));
}

TEST(Verify, FindsABlockOutsideTheArena) {
  StepPlan plan = small_plan();
  plan.memory.device_bytes -= 64;
  EXPECT_THAT(error_of(plan), HasSubstr("beyond the arena"));
}

TEST(Verify, FindsAnUnalignedOffset) {
  StepPlan plan = small_plan();
  block_of(plan, 4).offset += 4;
  EXPECT_THAT(error_of(plan), HasSubstr("unaligned offset"));
}

TEST(Verify, FindsABlockThatIsTooSmallOrMissing) {
  StepPlan small = small_plan();
  block_of(small, 2).bytes = 60;
  EXPECT_THAT(error_of(small), HasSubstr("no block holds scale#0"));
  StepPlan missing = small_plan(100);
  missing.memory.blocks.pop_back();
  EXPECT_THAT(error_of(missing), HasSubstr("no block holds the workspace of"));
}

TEST(Verify, FindsASpecThatDisagreesWithTheGraph) {
  StepPlan plan = small_plan();
  plan.specs[0].out[0].type = DataType::bf16;
  EXPECT_THAT(error_of(plan), HasSubstr("the graph has other operands"));
}

TEST(Verify, FindsANodeThatDoesNotRunAndAnUpdateThatRunsTwice) {
  StepPlan plan = small_plan();
  ASSERT_EQ(to_string(*plan.graph, plan.schedule.steps[3].action), "descend#3");
  StepPlan twice = plan;
  twice.schedule.steps.push_back(twice.schedule.steps[3]);
  EXPECT_THAT(error_of(twice), HasSubstr("descend#3 runs 2 times"));
  plan.schedule.steps.erase(plan.schedule.steps.begin() + 3);
  EXPECT_THAT(error_of(plan), HasSubstr("descend#3 runs 0 times"));
}

TEST(Verify, FindsARecomputationThatReadsAnUpdatedVariable) {
  StepPlan plan = small_plan();
  Schedule schedule = plan.schedule;
  schedule.steps.insert(schedule.steps.begin() + 4, {.action = Compute{NodeId{1}}});
  EXPECT_THAT(error_of([&] { make_plan(plan.graph, plan.specs, schedule); }),
              HasSubstr("meets w after 1 changes in place instead of 0"));
}

TEST(Verify, FindsAnOutputThatDoesNotLeave) {
  StepPlan plan = small_plan();
  plan.schedule.steps.pop_back();
  EXPECT_THAT(error_of(plan), HasSubstr("output c does not leave"));
}

TEST(Verify, FindsAWaitForALaterStep) {
  StepPlan plan = small_plan();
  plan.schedule.steps[0].after = {StepId{3}};
  EXPECT_THAT(error_of(plan), HasSubstr("does not come before it"));
}

TEST(Verify, FindsEverySingleMissingWaitOfRandomPlans) {
  int removed = 0;
  for (unsigned seed = 0; seed < 6; ++seed) {
    int kept = 0;
    const StepPlan plan = with_random_edits(
        make_plan(random_graph(seed), test_kernels({.workspace = 200})), seed, 25, kept);
    for (std::size_t s = 0; s < plan.schedule.steps.size(); ++s) {
      for (std::size_t w = 0; w < plan.schedule.steps[s].after.size(); ++w) {
        StepPlan broken = plan;
        auto& after = broken.schedule.steps[s].after;
        after.erase(after.begin() + static_cast<std::ptrdiff_t>(w));
        EXPECT_THAT(error_of(broken), HasSubstr("does not wait for"))
            << "seed " << seed << " step " << s << " wait " << w;
        ++removed;
      }
    }
  }
  EXPECT_GT(removed, 100);
}

TEST(MakePlan, KeepsTheWaitsOfItsScheduleAndVerifyFindsOneThatIsLost) {
  auto graph = std::make_shared<Graph>();
  const Value x = graph->input("x", floats(16));
  const Value w = graph->parameter("w", floats(16), {});
  emit(Combine(), {x, emit(Scale(2), {w})});
  Schedule triggered;
  triggered.steps = {{.action = Compute{NodeId{0}}},
                     {.action = Fetch{x.id}, .lane = Lane::copy_in, .after = {StepId{0}}},
                     {.action = Compute{NodeId{1}}}};
  const KernelTable table = test_kernels();
  StepPlan made = make_plan(graph, describe(*graph, table), triggered);
  EXPECT_EQ(made.schedule.steps[1].after, std::vector<StepId>{StepId{0}});
  made.schedule.steps[1].after.clear();
  EXPECT_EQ(error_of(made), "") << "a plan is right without it";
  EXPECT_THAT(error_of([&] { verify(made, triggered); }),
              HasSubstr("step 1 (fetch x) does not wait for what the schedule lets it wait for"));
}

TEST(Verify, FindsANodeThatRunsOnTwoLanes) {
  const StepPlan plan = small_plan();
  Schedule schedule = make_schedule(*plan.graph);
  ASSERT_EQ(to_string(*plan.graph, schedule.steps[1].action), "scale#0");
  schedule.steps.insert(schedule.steps.begin() + 2,
                        {.action = Compute{NodeId{0}}, .lane = Lane::side});
  EXPECT_THAT(error_of([&] { make_plan(plan.graph, plan.specs, schedule); }),
              HasSubstr("scale#0 runs on the lanes compute and side"));
  schedule.steps[2].lane = Lane::compute;
  EXPECT_EQ(error_of([&] { make_plan(plan.graph, plan.specs, schedule); }), "");
}

TEST(Verify, FindsHostBlocksThatOverlap) {
  auto graph = std::make_shared<Graph>();
  const Value x = graph->state("x", floats(16), {}, false);
  const Value a = emit(Scale(1), {x});
  const Value b = emit(Scale(2), {x});
  emit(Combine(), {a, b});
  StepPlan plan = make_plan(graph, test_kernels());
  Schedule schedule;
  schedule.steps = {{.action = Compute{NodeId{0}}},
                    {.action = Compute{NodeId{1}}},
                    {.action = Offload{a.id}, .lane = Lane::copy_out},
                    {.action = Offload{b.id}, .lane = Lane::copy_out},
                    {.action = Fetch{a.id}, .lane = Lane::copy_in},
                    {.action = Fetch{b.id}, .lane = Lane::copy_in},
                    {.action = Compute{NodeId{2}}}};
  plan = make_plan(graph, plan.specs, schedule);
  EXPECT_EQ(plan.memory.host_bytes, 128U);
  plan.memory.host_blocks[1].offset = plan.memory.host_blocks[0].offset;
  EXPECT_THAT(error_of(plan), HasSubstr("share bytes on the host"));
}

TEST(PlanText, HasALineForEveryStepAndTotals) {
  EXPECT_EQ(to_string(small_plan(100)),
            "    0 copy_in     fetch x                       f32[16] nchw @128+64\n"
            "    1 compute     scale#0                       f32[16] nchw @192+64"
            "  workspace @0+100  after 0\n"
            "    2 compute     combine#1                     f32[16] nchw @128+64"
            "  workspace @0+100\n"
            "    3 compute     descend#3                     f32[] nchw @256+4  workspace @0+100\n"
            "    4 compute     combine#2                     f32[16] nchw @256+64"
            "  workspace @0+100\n"
            "    5 copy_out    offload combine#2             f32[16] nchw @256+64  after 4\n"
            "6 steps\n"
            "step arena                     320 bytes, 0.0 MiB\n"
            "step lower bound               320 bytes, 0.0 MiB\n"
            "largest workspace              100 bytes, 0.0 MiB\n"
            "swapped to the host              0 bytes, 0.0 MiB\n");
}

}  // namespace
}  // namespace cnn
