#include <algorithm>
#include <gtest/gtest.h>
#include <string>
#include <vector>

#include "lms/policies.h"
#include "lms/summary.h"
#include "tests/lms/chain_step.h"
#include "tests/support/test_ops.h"

namespace cnn::lms {
namespace {

using tests::chain_step;
using tests::StepCase;
using tests::texts;

constexpr std::size_t dtr_image = 64;  // bytes

std::ptrdiff_t runs_of(const StepCase& c, const Plan& plan, const std::string& node) {
  return std::ranges::count(texts(*c.graph, plan.schedule), node);
}

TEST(Dtr, MeetsTheBudgetOfAChainWithTheSameBits) {
  StepCase c = chain_step(40);
  for (const std::size_t images : {40, 30, 20, 12, 8}) {
    c.budget.device = images * dtr_image;
    const Plan plan = dtr(c.request());
    EXPECT_LE(c.peak(plan.schedule).device_bytes, c.budget.device) << images;
    EXPECT_EQ(c.outcome(plan.schedule), c.outcome(c.schedule)) << images;
    EXPECT_EQ(summarize(*c.graph, plan.schedule).swap_outs, 0U);
  }
}

// The paper proves that memory of about twice the square root of the chain's length bounds the
// extra work by a constant factor. This holds only if the cost counts evicted neighbours.
TEST(Dtr, SpreadsEvictionsOverAChain) {
  StepCase c = chain_step(128);
  c.budget.device = 16 * dtr_image;
  EXPECT_LE(summarize(*c.graph, dtr(c.request()).schedule).recomputed, 2U * 128U);
}

TEST(Dtr, KeepsWhatIsExpensiveToComputeAgain) {
  StepCase c = chain_step(6);
  c.budget.device = c.peak(c.schedule).device_bytes - dtr_image;
  c.costs.seconds[1] = 100;
  EXPECT_EQ(runs_of(c, dtr(c.request()), "conv#1"), 1);
  c.costs.seconds.assign(c.costs.seconds.size(), 100);
  c.costs.seconds[1] = 1;
  EXPECT_EQ(runs_of(c, dtr(c.request()), "conv#1"), 2);
}

TEST(Dtr, EvictsOnlyWhereBytesAreMissingAndRecomputationIsAllowed) {
  StepCase c = chain_step(6);
  c.budget.device = c.peak(c.schedule).device_bytes;
  EXPECT_FALSE(summarize(*c.graph, dtr(c.request()).schedule).moves());
  c.budget.device -= dtr_image;
  EXPECT_TRUE(summarize(*c.graph, dtr(c.request()).schedule).moves());
  c.options.recompute = Recomputation::off;
  EXPECT_FALSE(summarize(*c.graph, dtr(c.request()).schedule).moves());
}

TEST(Dtr, EvictsNothingWhoseWeightsChangeBeforeItIsUsedAgain) {
  StepCase c;
  const Value w = c.weights(1);
  const Value a = c.make("conv", {c.images(), w});
  const Value first = c.make("loss_backward", {c.make("relu", {a})});
  emit(tests::Descend(), {w, c.make_all("dw", {first}, {w.desc()}).front()});
  const Value dy = c.make("relu_backward", {first});
  c.make("late", {dy, a});
  c.settle(first);
  c.budget.device = dtr_image;
  EXPECT_EQ(runs_of(c, dtr(c.request()), "conv#0"), 1);
}

}  // namespace
}  // namespace cnn::lms
