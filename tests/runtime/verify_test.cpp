#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include "runtime/error.h"
#include "runtime/program.h"
#include "tests/runtime/small_plan.h"
#include "tests/support/error_of.h"
#include "tests/support/swapping_step.h"
#include "tests/support/test_graphs.h"
#include "tests/support/test_ops.h"
#include "tests/support/test_step.h"

namespace cnn {
namespace {

using ::testing::HasSubstr;
using tests::Combine;
using tests::error_of;
using tests::floats;
using tests::random_graph;
using tests::Scale;
using tests::small_plan;
using tests::SumAndDifference;
using tests::test_kernels;
using tests::with_random_edits;

// Returns the verifier's error, or "" if the plan is correct.
std::string complaint(const StepPlan& plan) {
  return error_of([&] { verify(plan); });
}

Block& block_of(StepPlan& plan, std::uint32_t tensor) {
  for (Block& block : plan.memory.blocks) {
    if (block.owner == std::variant<TensorId, NodeId>(TensorId{tensor})) {
      return block;
    }
  }
  throw Error("no such block");
}

TEST(Verify, AcceptsWhatThePlannersMake) { EXPECT_EQ(complaint(small_plan(100)), ""); }

TEST(Verify, FindsATensorThatIsUsedBeforeItIsThere) {
  StepPlan plan = small_plan();
  std::swap(plan.schedule.steps[1].action, plan.schedule.steps[2].action);
  EXPECT_THAT(complaint(plan), HasSubstr("uses scale#0, which is not on the device"));
}

TEST(Verify, FindsBlocksThatOverlap) {
  StepPlan plan = small_plan();
  block_of(plan, 3).offset = block_of(plan, 2).offset;  // b overlaps a, which c still reads
  EXPECT_THAT(complaint(plan), HasSubstr("scale#0 and combine#1 share bytes in step"));
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
  EXPECT_EQ(complaint(plan), "");
  EXPECT_EQ(block_of(plan, 4).offset, block_of(plan, 2).offset);
  EXPECT_EQ(block_of(plan, 5).offset, block_of(plan, 3).offset);
  block_of(plan, 5).offset = block_of(plan, 4).offset;
  EXPECT_THAT(complaint(plan), HasSubstr("share bytes in step"));
}

TEST(Verify, FindsABlockOutsideTheArena) {
  StepPlan plan = small_plan();
  plan.memory.device_bytes -= 64;
  EXPECT_THAT(complaint(plan), HasSubstr("beyond the arena"));
}

TEST(Verify, FindsAnUnalignedOffset) {
  StepPlan plan = small_plan();
  block_of(plan, 4).offset += 4;
  EXPECT_THAT(complaint(plan), HasSubstr("unaligned offset"));
}

TEST(Verify, FindsABlockThatIsTooSmallOrMissing) {
  StepPlan small = small_plan();
  block_of(small, 2).bytes = 60;
  EXPECT_THAT(complaint(small), HasSubstr("no block holds scale#0"));
  StepPlan missing = small_plan(100);
  missing.memory.blocks.pop_back();
  EXPECT_THAT(complaint(missing), HasSubstr("no block holds the workspace of"));
}

TEST(Verify, FindsAWaitForALaterStep) {
  StepPlan plan = small_plan();
  plan.schedule.steps[0].after = {StepId{3}};
  EXPECT_THAT(complaint(plan), HasSubstr("does not come before it"));
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
        EXPECT_THAT(complaint(broken), HasSubstr("does not wait for"))
            << "seed " << seed << " step " << s << " wait " << w;
        ++removed;
      }
    }
  }
  EXPECT_GT(removed, 100);
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
  EXPECT_THAT(complaint(plan), HasSubstr("share bytes on the host"));
}

TEST(Verify, FindsWhatIsWrongWithATripToTheDisk) {
  const StepPlan plan = tests::storing_plan();
  EXPECT_EQ(complaint(plan), "");
  StepPlan broken = plan;
  broken.schedule.steps[4].after.clear();  // the store waits for the offload
  EXPECT_THAT(complaint(broken),
              HasSubstr("(store scale#0) does not wait for the step that gives"));
  broken = plan;
  broken.schedule.steps[7].after.clear();  // the fetch waits for the load
  EXPECT_THAT(complaint(broken),
              HasSubstr("(fetch scale#0) does not wait for the step that gives"));
  broken = plan;
  broken.memory.host_blocks[1].offset += 64;
  broken.memory.host_bytes += 64;
  EXPECT_THAT(complaint(broken), HasSubstr("at an offset that direct I/O refuses"));
  broken = plan;
  broken.memory.host_blocks[0].bytes = 256;
  EXPECT_THAT(complaint(broken),
              HasSubstr("no host block holds scale#0 in step 4 (store scale#0)"));
  broken = plan;
  broken.memory.disk_blocks.clear();
  EXPECT_THAT(complaint(broken), HasSubstr("no block of the file holds the tensor of step 4"));
  broken = plan;
  broken.memory.disk_bytes -= 1;
  EXPECT_THAT(complaint(broken), HasSubstr("beyond the file of 4095 bytes"));
  broken = plan;
  broken.memory.disk_blocks.push_back(broken.memory.disk_blocks[0]);
  EXPECT_THAT(complaint(broken), HasSubstr("share bytes on the disk"));
}

// The host bytes of a stored tensor are those of another one while it is on the disk.
TEST(Verify, FindsAnOffloadThatDoesNotWaitForTheStoreWhoseHostBytesItTakes) {
  auto graph = std::make_shared<Graph>();
  const Value x = graph->state("x", floats(16), {}, false);
  const Value a = emit(Scale(1), {x});
  const Value b = emit(Scale(2), {x});
  emit(Combine(), {a, b});
  Schedule schedule;
  schedule.steps = {{.action = Compute{NodeId{0}}},
                    {.action = Offload{a.id}, .lane = Lane::copy_out},
                    {.action = Store{a.id}, .lane = Lane::disk},
                    {.action = Compute{NodeId{1}}},
                    {.action = Offload{b.id}, .lane = Lane::copy_out},
                    {.action = Fetch{b.id}, .lane = Lane::copy_in},
                    {.action = Load{a.id}, .lane = Lane::disk},
                    {.action = Fetch{a.id}, .lane = Lane::copy_in},
                    {.action = Compute{NodeId{2}}}};
  const StepPlan plan =
      make_plan(graph, std::vector<KernelSpec>(describe(*graph, test_kernels())), schedule);
  ASSERT_EQ(plan.memory.host_bytes, disk_alignment);
  EXPECT_EQ(complaint(plan), "");
  StepPlan broken = plan;
  std::erase(broken.schedule.steps[4].after, StepId{2});
  EXPECT_THAT(complaint(broken), HasSubstr("does not wait for the last use of the host copy of"));
  broken = plan;
  std::erase(broken.schedule.steps[6].after, StepId{5});
  EXPECT_THAT(complaint(broken), HasSubstr("does not wait for the last use of the host copy of"));
}

}  // namespace
}  // namespace cnn
