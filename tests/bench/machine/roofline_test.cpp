#include "bench/machine/roofline.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "layers/elementwise.h"

namespace cnn::bench {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

constexpr Ceilings ceilings{
    .flops_per_second = 1000,
    .bytes_per_second = 10,
    .caches = {{{.bytes = 100, .bytes_per_second = 100}, {.bytes = 600, .bytes_per_second = 50}}}};

TEST(SecondsToMove, TakeAsMuchAsFitsOutOfEachCache) {
  EXPECT_DOUBLE_EQ(seconds_to_move(50, ceilings), 0.5);
  EXPECT_DOUBLE_EQ(seconds_to_move(200, ceilings), 1 + 2);
  EXPECT_DOUBLE_EQ(seconds_to_move(1000, ceilings), 1 + 10 + 40);
}

TEST(SecondsToMove, AreThoseOfMemoryWhereNoCacheIsKnown) {
  EXPECT_DOUBLE_EQ(seconds_to_move(200, {.flops_per_second = 1, .bytes_per_second = 10}), 20);
}

// Returns a plan of one node that reads and writes 1000 bytes in total, which takes 51 seconds at
// the ceilings.
StepPlan plan() {
  auto graph = std::make_shared<Graph>();
  const Value x = graph->state("x", {Shape{125}}, {}, false);
  graph->output("y", emit(layers::Scale(0.5F), {x}));
  return {.graph = graph, .specs = std::vector<KernelSpec>(1), .schedule = {}, .memory = {}};
}

TEST(Roofline, SaysHowNearStepsCame) {
  const Roofline roofline =
      compare_with_roofline(plan(), ceilings, {.median_seconds = 102, .batch = 2});
  EXPECT_DOUBLE_EQ(roofline.seconds, 51);
  EXPECT_DOUBLE_EQ(roofline.percent, 50);
  EXPECT_THAT(roofline.lines, ElementsAre(HasSubstr("50.0 % of the roofline")));
}

TEST(Roofline, DoesNotShowMoreThanAllWithoutAWord) {
  const Roofline roofline =
      compare_with_roofline(plan(), ceilings, {.median_seconds = 34, .batch = 2});
  EXPECT_THAT(roofline.lines, ElementsAre(HasSubstr("150.0 %"), HasSubstr("more than 100 %")));
}

}  // namespace
}  // namespace cnn::bench
