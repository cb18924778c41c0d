#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <memory>
#include <string>

#include "runtime/program.h"
#include "tests/runtime/small_plan.h"
#include "tests/support/joined_graphs.h"
#include "tests/support/swapping_step.h"
#include "tests/support/test_ops.h"
#include "tests/support/test_step.h"

namespace cnn {
namespace {

using ::testing::HasSubstr;
using tests::Combine;
using tests::floats;
using tests::Scale;
using tests::small_plan;
using tests::test_kernels;

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

TEST(PlanText, ShowsTheCopiesOfATensorThatLeavesAndTheBytesOfTheHost) {
  auto graph = std::make_shared<Graph>();
  const Value x = graph->state("x", floats(16), {}, false);
  const Value a = emit(Scale(1), {x});
  emit(Combine(), {a, emit(Scale(2), {x})});
  StepPlan plan = make_plan(graph, test_kernels());
  Schedule schedule;
  schedule.steps = {{.action = Compute{NodeId{0}}},
                    {.action = Offload{a.id}, .lane = Lane::copy_out},
                    {.action = Compute{NodeId{1}}},
                    {.action = Fetch{a.id}, .lane = Lane::copy_in},
                    {.action = Compute{NodeId{2}}}};
  const std::string text = to_string(make_plan(graph, plan.specs, schedule));
  EXPECT_THAT(text, HasSubstr("    1 copy_out    offload scale#0               f32[16] nchw @"));
  EXPECT_THAT(text, HasSubstr("    3 copy_in     fetch scale#0                 f32[16] nchw @"));
  EXPECT_THAT(text, HasSubstr("swapped to the host             64 bytes, 0.0 MiB\n"));
}

TEST(PlanText, SaysInWhichTensorAPartLies) {
  auto graph = std::make_shared<Graph>();
  const TensorDesc part = tests::image(4), whole = tests::image(8);
  const Value x = graph->state("x", part, {}, false);
  const auto made = [&](std::shared_ptr<const Op> op, std::vector<TensorId> in, const char* name,
                        const TensorDesc& desc) {
    const TensorId id = graph->add_tensor({.name = name, .desc = desc});
    graph->add_node({.op = std::move(op), .inputs = std::move(in), .outputs = {id}});
    return id;
  };
  const TensorId a = made(std::make_shared<const Scale>(2), {x.id}, "a", part);
  const TensorId b = made(std::make_shared<const Scale>(3), {x.id}, "b", part);
  const TensorId both = made(std::make_shared<const tests::Join>(), {a, b}, "both", whole);
  graph->place_inside(a, both, 0);
  graph->place_inside(b, both, 4);
  const std::string text = to_string(make_plan(graph, tests::spread_kernels()));
  const std::string first = text.substr(0, text.find('\n'));
  EXPECT_THAT(first, HasSubstr(" @0 in both"));
  EXPECT_THAT(text, HasSubstr(" @16 in both")) << "after four channels of four bytes";
}

TEST(PlanText, SaysMebibytes) {
  auto graph = std::make_shared<Graph>();
  const Value x = graph->state("x", floats(16), {}, false);
  graph->output("y", emit(tests::Opaque({floats(3 << 19)}), {x}));
  EXPECT_THAT(to_string(make_plan(graph, test_kernels())),
              HasSubstr("step arena                 6291456 bytes, 6.0 MiB\n"));
}

TEST(PlanText, HasTotalsWithoutSteps) {
  EXPECT_THAT(to_string(make_plan(std::make_shared<Graph>(), test_kernels())),
              HasSubstr("0 steps\nstep arena                       0 bytes, 0.0 MiB\n"));
}

TEST(PlanText, ShowsTheDiskWhereThePlanStoresTensors) {
  const std::string text = to_string(tests::storing_plan());
  EXPECT_THAT(text, HasSubstr("    4 disk        store scale#0"));
  EXPECT_THAT(text, HasSubstr(" @0+4096"));
  EXPECT_THAT(text, HasSubstr("    6 disk        load scale#0"));
  EXPECT_THAT(text, HasSubstr("swapped to the disk           4096 bytes, 0.0 MiB\n"));
  EXPECT_THAT(to_string(tests::swapping_plan()), testing::Not(HasSubstr("swapped to the disk")));
}

}  // namespace
}  // namespace cnn
