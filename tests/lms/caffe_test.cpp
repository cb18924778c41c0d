#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "lms/policies.h"
#include "lms/summary.h"
#include "tests/lms/chain_step.h"
#include "tests/lms/random_step.h"

namespace cnn::lms {
namespace {

using ::testing::ElementsAre;
using tests::lines;
using tests::StepCase;
using tests::texts;

StepCase caffe_chain(std::size_t layers, std::size_t images) {
  StepCase c = tests::chain_step(layers);
  c.budget.device = images * 64;
  return c;
}

TEST(Caffe, WaitsForEachCopyAndLogsItsAllocations) {
  const StepCase c = caffe_chain(5, 4);
  const Plan plan = caffe(c.request());
  EXPECT_THAT(texts(*c.graph, plan.schedule),
              ElementsAre("conv#0", "conv#1", "offload conv#0", "conv#2 <2", "offload conv#1",
                          "conv#3 <4", "conv#4", "loss_backward#5", "conv_backward_weights#6",
                          "descend#7", "conv_backward_data#8", "conv_backward_weights#9",
                          "descend#10", "conv_backward_data#11", "fetch conv#1 <13",
                          "conv_backward_weights#12", "descend#13", "conv_backward_data#14",
                          "fetch conv#0 <17", "conv_backward_weights#15", "descend#16",
                          "conv_backward_data#17", "conv_backward_weights#18", "descend#19"));
  EXPECT_THAT(lines(plan),
              ElementsAre("allocate: size=72 [count=4 demanded=100% allocated=100% available=0%]"));
  EXPECT_EQ(lines(plan, 1).size(), 4U);
}

TEST(Caffe, ManagesWhatIsAskedForBeyondAShareOfTheMemory) {
  StepCase c = caffe_chain(10, 5);
  EXPECT_EQ(summarize(*c.graph, caffe(c.request()).schedule).swap_outs, 6U);
  c.options.frac = 1;  // the first four stay on the device
  EXPECT_EQ(summarize(*c.graph, caffe(c.request()).schedule).swap_outs, 5U);
  c.options.size_threshold = 65;
  EXPECT_FALSE(summarize(*c.graph, caffe(c.request()).schedule).moves());
}

// A blob that came back is unchanged, so the host's copy of it is still valid.
TEST(Caffe, CopiesABlobOutOnceHoweverOftenItLeaves) {
  std::size_t outs = 0, ins = 0;
  for (unsigned seed = 0; seed < 100; ++seed) {
    StepCase c = tests::random_step(seed);
    c.budget.device = c.peak(c.schedule).device_bytes / 2;
    const Summary summary = summarize(*c.graph, caffe(c.request()).schedule);
    EXPECT_EQ(summary.swap_outs, summary.swapped_tensors) << seed;
    outs += summary.swap_outs;
    ins += summary.swap_ins;
  }
  EXPECT_GT(ins, outs) << "some tensors are swapped out twice";
}

TEST(Caffe, LogsNothingWhereNothingMayLeave) {
  StepCase c = caffe_chain(5, 4);
  c.options.size_threshold = 1U << 20U;
  EXPECT_TRUE(lines(caffe(c.request()), 2).empty());
}

TEST(Caffe, CountsVariablesInTheMemoryOfItsLog) {
  StepCase c = caffe_chain(5, 4);
  c.variable_bytes = c.budget.device;
  EXPECT_THAT(lines(caffe(c.request())),
              ElementsAre("allocate: size=72 [count=4 demanded=50% allocated=50% available=0%]"));
}

}  // namespace
}  // namespace cnn::lms
