// Tensors that lie inside another one: where they are, how long they live, what may not be done.

#include <algorithm>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <string>
#include <vector>

#include "runtime/error.h"
#include "runtime/executor.h"
#include "runtime/liveness.h"
#include "runtime/program.h"
#include "tests/support/error_of.h"
#include "tests/support/joined_graphs.h"
#include "tests/support/test_ops.h"
#include "tests/support/test_step.h"

namespace cnn {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using tests::error_of;
using tests::image;
using tests::Join;
using tests::Opaque;
using tests::Scale;
using tests::spread_kernels;
using tests::TestStep;

// x -> a, b -> whole -> y, which leaves; a, of four channels, and b lie inside the whole.
struct Joined {
  std::shared_ptr<Graph> graph = std::make_shared<Graph>();
  Value x = graph->state("x", image(4), {}, false);
  Value a = make(Scale(2), x);
  Value b = make(Scale(3), x);
  Value whole = join(a, b);
  Value y = make(Scale(1), whole);

  // The ops of tests know no layouts.
  template <class O>
  Value make(O op, Value in) {
    return add(std::make_shared<const O>(op), {in.id}, in.desc().shape[1]);
  }
  Value join(Value one, Value other) {
    return add(std::make_shared<const Join>(), {one.id, other.id},
               one.desc().shape[1] + other.desc().shape[1]);
  }
  Value add(std::shared_ptr<const Op> op, std::vector<TensorId> in, std::int64_t channels) {
    const std::string name = std::string(op->name()) + "#" + std::to_string(graph->nodes().size());
    const TensorId id = graph->add_tensor({.name = name, .desc = image(channels)});
    graph->add_node({.op = std::move(op), .inputs = std::move(in), .outputs = {id}});
    return {graph.get(), id};
  }

  Joined() {
    graph->output("y", y);
    graph->place_inside(a.id, whole.id, 0);
    graph->place_inside(b.id, whole.id, 4);
  }
};

TEST(Part, HasThePitchOfTheTensorThatItLiesIn) {
  const Joined j;
  EXPECT_EQ(to_string(j.b.desc()), "f32[2, 4, 1, 3] nhwc pitch 8");
  EXPECT_EQ(j.b.desc().bytes(), 2U * 4 * 3 * 4);
  EXPECT_EQ(j.b.desc().extent(), (5U * 8 + 4) * 4);
  EXPECT_EQ(j.graph->root_of(j.b.id), j.whole.id);
  EXPECT_EQ(j.graph->offset_in_root(j.b.id), 16U);
  EXPECT_EQ(j.graph->offset_in_root(j.whole.id), 0U);
  EXPECT_TRUE(j.graph->shares_bytes(j.a.id));
  EXPECT_TRUE(j.graph->shares_bytes(j.whole.id));
  EXPECT_FALSE(j.graph->shares_bytes(j.y.id));
}

TEST(Part, CannotLieWhereItDoesNotFit) {
  const auto placed = [](std::int64_t first, std::int64_t channels) {
    Joined j;
    const Value z = j.add(std::make_shared<const Opaque>(std::vector{image(4)}), {}, channels);
    j.graph->place_inside(z.id, j.y.id, first);
  };
  EXPECT_EQ(error_of([&] { placed(4, 4); }), "");
  EXPECT_THAT(error_of([&] { placed(5, 4); }),
              HasSubstr("opaque#4, f32[2, 4, 1, 3] nhwc, cannot lie inside scale#3, f32[2, 8, 1, "
                        "3] nhwc, from channel 5 on"));
  EXPECT_THAT(error_of([&] { placed(-1, 4); }), HasSubstr("cannot lie inside"));
  Joined j;
  EXPECT_THAT(error_of([&] { j.graph->place_inside(j.a.id, j.y.id, 0); }),
              HasSubstr("cannot lie inside"))
      << "it lies inside another already";
  EXPECT_THAT(error_of([&] { j.graph->place_inside(j.whole.id, j.y.id, 0); }),
              HasSubstr("cannot lie inside"))
      << "others lie inside it";
  EXPECT_THAT(error_of([&] { j.graph->place_inside(j.y.id, j.x.id, 0); }),
              HasSubstr("cannot lie inside"))
      << "a variable lies elsewhere";
}

TEST(Part, LivesAsTheTensorThatItLiesIn) {
  const Joined j;
  const auto intervals = live_intervals(*j.graph, make_schedule(*j.graph));
  ASSERT_EQ(intervals.size(), 2U);
  EXPECT_EQ(intervals[0].tensor, j.whole.id);
  EXPECT_THAT(intervals[0].touched_by, ElementsAre(StepId{0}, StepId{1}, StepId{2}, StepId{3}));
  EXPECT_EQ(intervals[1].tensor, j.y.id);
}

TEST(Part, IsNotReadBeforeItIsMadeThoughItsBytesAreThere) {
  const Joined j;
  Schedule schedule = make_schedule(*j.graph);
  std::swap(schedule.steps[1].action, schedule.steps[2].action);
  EXPECT_EQ(error_of([&] { live_intervals(*j.graph, schedule); }),
            "step 1 (join#2) uses scale#1, which is not on the device");
  schedule = make_schedule(*j.graph);
  std::swap(schedule.steps[2].action, schedule.steps[3].action);
  EXPECT_EQ(error_of([&] { live_intervals(*j.graph, schedule); }),
            "step 2 (scale#3) uses join#2, which is not on the device");
}

TEST(Part, DoesNotLeaveTheDeviceOnItsOwn) {
  const Joined j;
  Schedule schedule = make_schedule(*j.graph);
  schedule.steps.push_back({.action = Offload{j.a.id}});
  EXPECT_THAT(error_of([&] { live_intervals(*j.graph, schedule); }),
              HasSubstr("moves bytes that lie inside join#2"));
}

TEST(Part, LeavesAndReturnsWithTheWhole) {
  const Joined j;
  Schedule schedule = make_schedule(*j.graph);
  const auto before_last = [&](Step step) {
    schedule.steps.insert(schedule.steps.begin() + 3, std::move(step));
  };
  before_last({.action = Fetch{j.whole.id}, .lane = Lane::copy_in});
  before_last({.action = Offload{j.whole.id}, .lane = Lane::copy_out});
  const auto intervals = live_intervals(*j.graph, schedule);
  ASSERT_EQ(intervals.size(), 3U);
  EXPECT_THAT(intervals[0].touched_by, ElementsAre(StepId{0}, StepId{1}, StepId{2}, StepId{3}));
  EXPECT_THAT(intervals[1].touched_by, ElementsAre(StepId{4}, StepId{5}));
  TestStep plain(make_plan(j.graph, spread_kernels()), spread_kernels());
  plain.run();
  TestStep swapped(make_plan(j.graph, describe(*j.graph, spread_kernels()), std::move(schedule)),
                   spread_kernels());
  swapped.run();
  EXPECT_EQ(swapped.outcome(), plain.outcome());
}

TEST(Part, BeginsAnewWhereAllPartsAreMadeAgain) {
  const Joined j;
  Schedule schedule = make_schedule(*j.graph);
  const std::vector<Step> made(schedule.steps.begin(), schedule.steps.begin() + 3);
  schedule.steps.insert(schedule.steps.begin() + 3, made.begin(), made.end());
  const auto intervals = live_intervals(*j.graph, schedule);
  ASSERT_EQ(intervals.size(), 3U);
  EXPECT_EQ(intervals[0].last, StepId{2});
  EXPECT_THAT(intervals[1].touched_by, ElementsAre(StepId{3}, StepId{4}, StepId{5}, StepId{6}));
  // The bytes beside one part must not change.
  Schedule half = make_schedule(*j.graph);
  half.steps.insert(half.steps.begin() + 3, made.front());
  EXPECT_EQ(live_intervals(*j.graph, half).size(), 2U);
  TestStep plain(make_plan(j.graph, spread_kernels()), spread_kernels());
  plain.run();
  TestStep again(make_plan(j.graph, describe(*j.graph, spread_kernels()), std::move(schedule)),
                 spread_kernels());
  again.run();
  EXPECT_EQ(again.outcome(), plain.outcome());
}

TEST(Part, TakesNoBytesOfTheArena) {
  const Joined j;
  const StepPlan plan = make_plan(j.graph, spread_kernels());
  ASSERT_EQ(plan.memory.blocks.size(), 2U);
  EXPECT_EQ(plan.memory.device_bytes, 2U * 2 * 8 * 3 * 4);
  const BlockIndex index(*j.graph, plan.memory);
  EXPECT_EQ(index.tensor(j.a.id, StepId{1}), index.tensor(j.whole.id, StepId{1}));
  EXPECT_THAT(to_string(plan), HasSubstr("f32[2, 4, 1, 3] nhwc pitch 8 @16 in join#2"));
}

// y = 2 a + 1 in the place of a part, or a part in the place of what it is made of.
TEST(Part, IsNotOverwrittenAndOverwritesNothing) {
  Joined j;
  const tests::TestOpOptions in_place{.in_place = true};
  const Value z = j.make(Scale(5, in_place), j.a);
  const Value c = j.make(Scale(5, in_place), z);
  const Value d = j.make(Scale(5), j.x);
  const Value other = j.join(c, d);
  EXPECT_FALSE(may_reuse_in_place(*j.graph, j.graph->nodes()[4], 0, 0)) << "a is a part";
  EXPECT_TRUE(may_reuse_in_place(*j.graph, j.graph->nodes()[5], 0, 0));
  j.graph->place_inside(c.id, other.id, 0);
  EXPECT_FALSE(may_reuse_in_place(*j.graph, j.graph->nodes()[5], 0, 0)) << "c is one now";
}

TEST(Part, IsComputedInItsPlace) {
  const Joined j;
  TestStep step(make_plan(j.graph, spread_kernels()), spread_kernels());
  step.run();
  const auto y = step.executor().results()[0].as<float>();
  const std::vector<float> outcome = step.outcome();  // y, then x
  const auto x = std::span(outcome).subspan(y.size());
  for (std::size_t pixel = 0; pixel < 6; ++pixel) {
    for (std::size_t c = 0; c < 4; ++c) {
      EXPECT_EQ(y[pixel * 8 + c], 2 * x[pixel * 4 + c] + 2) << pixel << " " << c;
      EXPECT_EQ(y[pixel * 8 + 4 + c], 3 * x[pixel * 4 + c] + 2) << pixel << " " << c;
    }
  }
  EXPECT_EQ(step.executor().measured_peak_bytes(), step.executor().plan().memory.device_bytes);
}

// The second part is made on a lane of its own: what reads the whole must wait for it.
TEST(Part, IsWaitedForByWhatReadsTheWhole) {
  Joined j;
  const Value c = j.make(Scale(2), j.x);
  const Value d = j.make(Scale(3, {.lane = Lane::side}), j.x);
  const Value other = j.join(c, d);
  j.make(Scale(1), other);
  j.graph->place_inside(c.id, other.id, 0);
  j.graph->place_inside(d.id, other.id, 4);
  StepPlan plan = make_plan(j.graph, spread_kernels());
  bool waited = false;
  for (Step& step : plan.schedule.steps) {
    const auto* compute = std::get_if<Compute>(&step.action);
    if (compute != nullptr && compute->node == NodeId{6}) {
      waited = !step.after.empty();
      step.after.clear();
    }
  }
  EXPECT_TRUE(waited);
  EXPECT_THAT(error_of([&] { verify(plan); }),
              HasSubstr("does not wait for the step that gives it"));
}

TEST(Verify, FindsPartsThatNothingJoins) {
  Joined j;
  const Value z = j.make(Scale(2), j.x);
  const Value wide = j.make(Scale(2), j.y);
  j.graph->place_inside(z.id, wide.id, 0);
  EXPECT_THAT(error_of([&] { make_plan(j.graph, spread_kernels()); }),
              HasSubstr("scale#4 lies inside scale#5, but nothing makes it so"));
}

TEST(Verify, FindsPartsThatShareBytes) {
  for (const std::int64_t first : {0, 2}) {
    Joined j;
    const Value c = j.make(Scale(2), j.x);
    const Value d = j.make(Scale(3), j.x);
    const Value other = j.join(c, d);
    j.graph->place_inside(c.id, other.id, 0);
    j.graph->place_inside(d.id, other.id, first);
    EXPECT_NE(error_of([&] { make_plan(j.graph, spread_kernels()); }), "") << first;
  }
}

}  // namespace
}  // namespace cnn
