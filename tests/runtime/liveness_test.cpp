#include "runtime/liveness.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <string>

#include "runtime/access.h"
#include "runtime/error.h"
#include "tests/support/error_of.h"
#include "tests/support/swapping_step.h"
#include "tests/support/test_ops.h"

namespace cnn {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using tests::Combine;
using tests::Descend;
using tests::floats;
using tests::Opaque;
using tests::Scale;

struct Chain {  // x -> y -> z = combine(y, w)
  Graph graph;
  Value x = graph.input("x", floats(4));
  Value w = graph.parameter("w", floats(4), {});
  Value y = emit(Scale(2), {x});
  Value z = emit(Combine(), {y, w});

  // Returns a schedule of these actions on one lane.
  static Schedule of(std::initializer_list<Action> actions) {
    Schedule schedule;
    for (const Action& action : actions) {
      schedule.steps.push_back({.action = action});
    }
    return schedule;
  }
  std::string error_of(const Schedule& schedule) const {
    try {
      live_intervals(graph, schedule);
    } catch (const Error& error) {
      return error.what();
    }
    return "none";
  }
};

TEST(Residencies, LastFromProductionToTheLastTouch) {
  const Chain c;
  const auto intervals = live_intervals(
      c.graph, Chain::of({Fetch{c.x.id}, Compute{NodeId{0}}, Compute{NodeId{1}}, Offload{c.z.id}}));
  ASSERT_EQ(intervals.size(), 3U) << "the parameter has no interval";
  EXPECT_EQ(intervals[0].tensor, c.x.id);
  EXPECT_THAT(intervals[0].touched_by, ElementsAre(StepId{0}, StepId{1}));
  EXPECT_EQ(intervals[1].tensor, c.y.id);
  EXPECT_EQ(intervals[1].first, StepId{1});
  EXPECT_EQ(intervals[1].last, StepId{2});
  EXPECT_EQ(intervals[2].last, StepId{3}) << "the offload touches it";
}

TEST(Residencies, BeginAnewAfterSwapAndRecomputation) {
  const Chain c;
  const auto intervals = live_intervals(
      c.graph, Chain::of({Fetch{c.x.id}, Compute{NodeId{0}}, Offload{c.y.id}, Fetch{c.y.id},
                          Compute{NodeId{1}}, Fetch{c.x.id}, Compute{NodeId{0}}}));
  ASSERT_EQ(intervals.size(), 6U);
  EXPECT_THAT(intervals[1].touched_by, ElementsAre(StepId{1}, StepId{2}));
  EXPECT_THAT(intervals[2].touched_by, ElementsAre(StepId{3}, StepId{4}));
  EXPECT_EQ(intervals[5].tensor, c.y.id);
  EXPECT_EQ(intervals[5].first, StepId{6});
}

// The host keeps its copy, so a tensor with parts may be copied back for each of its uses.
TEST(Residencies, BeginAnewWhereATensorWithPartsIsFetchedAgain) {
  const TensorDesc narrow{.shape = {2, 4, 1, 8}, .layout = Layout::nhwc};
  TensorDesc wide = narrow;
  wide.shape = {2, 8, 1, 8};
  Graph graph;
  const Value x = graph.input("x", narrow);
  const Value part = emit(Opaque({narrow}), {x});
  const Value whole = emit(Opaque({wide}), {part});
  const Value use = emit(Opaque({narrow}), {whole});
  emit(Opaque({narrow}), {use, whole});
  graph.place_inside(part.id, whole.id, 0);
  const auto intervals = live_intervals(
      graph, Chain::of({Fetch{x.id}, Compute{NodeId{0}}, Compute{NodeId{1}}, Offload{whole.id},
                        Fetch{whole.id}, Compute{NodeId{2}}, Fetch{whole.id}, Compute{NodeId{3}}}));
  std::vector<StepId> last;
  for (const LiveInterval& interval : intervals) {
    if (interval.tensor == whole.id) {
      last.push_back(interval.last);
    }
  }
  EXPECT_THAT(last, ElementsAre(StepId{3}, StepId{5}, StepId{7}));
}

TEST(Residencies, RefuseAUseWhileTheTensorIsAway) {
  const Chain c;
  EXPECT_EQ(c.error_of(Chain::of({Compute{NodeId{0}}})),
            "step 0 (scale#0) uses x, which is not on the device");
  EXPECT_EQ(c.error_of(Chain::of(
                {Fetch{c.x.id}, Compute{NodeId{0}}, Offload{c.y.id}, Compute{NodeId{1}}})),
            "step 3 (combine#1) uses scale#0, which is not on the device");
}

TEST(Residencies, RefuseToFetchWhatIsNotOnTheHost) {
  const Chain c;
  EXPECT_THAT(c.error_of(Chain::of({Fetch{c.y.id}})), HasSubstr("has no copy on the host"));
  EXPECT_THAT(c.error_of(Chain::of({Fetch{c.w.id}})), HasSubstr("is a variable"));
}

TEST(Accesses, TellReadsFromChangesAndDefinitions) {
  Graph graph;
  const Value w = graph.parameter("w", floats(4), {});
  const Value g = graph.input("g", floats(4));
  const Value sum = emit(Descend(), {w, g});
  const auto of_node = accesses(graph, Compute{NodeId{0}});
  ASSERT_EQ(of_node.size(), 3U);
  EXPECT_EQ(of_node[0].kind, Access::Kind::mutate);
  EXPECT_EQ(of_node[1].kind, Access::Kind::read);
  EXPECT_EQ(of_node[2].kind, Access::Kind::define);
  EXPECT_EQ(of_node[2].tensor, sum.id);
  EXPECT_EQ(accesses(graph, Offload{sum.id})[0].kind, Access::Kind::read);
  EXPECT_EQ(accesses(graph, Fetch{g.id})[0].kind, Access::Kind::define);
}

TEST(LiveIntervals, RefuseAStoreOrLoadOfWhatIsNotThere) {
  const StepPlan plan = tests::storing_plan();
  const auto error_without = [&](std::size_t step) {
    Schedule schedule = plan.schedule;
    schedule.steps.erase(schedule.steps.begin() + static_cast<std::ptrdiff_t>(step));
    return tests::error_of([&] { live_intervals(*plan.graph, schedule); });
  };
  EXPECT_THAT(error_without(3), HasSubstr("(store scale#0) has no copy to move"));
  EXPECT_THAT(error_without(4), HasSubstr("(load scale#0) has no copy to move"));
  EXPECT_THAT(error_without(6), HasSubstr("(fetch scale#0) has no copy on the host"));
}

}  // namespace
}  // namespace cnn
