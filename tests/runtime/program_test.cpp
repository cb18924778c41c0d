#include "runtime/program.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <vector>

#include "runtime/cpu/reference_kernel.h"
#include "tests/runtime/small_plan.h"
#include "tests/support/error_of.h"
#include "tests/support/test_ops.h"
#include "tests/support/test_step.h"

namespace cnn {
namespace {

using ::testing::HasSubstr;
using tests::Combine;
using tests::error_of;
using tests::floats;
using tests::Relu;
using tests::Scale;
using tests::small_plan;
using tests::test_kernels;

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
  EXPECT_EQ(error_of([&] { verify(made); }), "") << "a plan is valid without it";
  EXPECT_THAT(error_of([&] { verify(made, triggered); }),
              HasSubstr("step 1 (fetch x) does not wait for what the schedule lets it wait for"));
}

}  // namespace
}  // namespace cnn
