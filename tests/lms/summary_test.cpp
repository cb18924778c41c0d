#include "lms/summary.h"

#include <algorithm>
#include <gtest/gtest.h>
#include <vector>

#include "tests/lms/problem.h"

namespace cnn::lms {
namespace {

using tests::unit;

Step step_of(const Action& action, Lane lane) { return {.action = action, .lane = lane}; }

class ChainSummary : public ::testing::Test {
 protected:
  // Roots 0 and 1 are activations of the chain; the last tensor is the graph's output.
  Summary with(const std::vector<Step>& more) {
    Schedule schedule = chain_.schedule;
    schedule.steps.insert(schedule.steps.end(), more.begin(), more.end());
    return summarize(*chain_.graph, schedule);
  }
  const Schedule& plain() const { return chain_.schedule; }
  TensorId made_by(std::size_t node) const { return chain_.graph->nodes()[node].outputs.front(); }
  const Graph& graph() const { return *chain_.graph; }

 private:
  tests::Problem chain_ = tests::uniform_chain(2);
};

TEST_F(ChainSummary, IsEmptyWithoutAPlan) {
  const Summary none = with({});
  EXPECT_FALSE(none.moves());
  EXPECT_EQ(none.swapped_tensors, 0U);
}

TEST_F(ChainSummary, TellsTheOrderOfFirstRunsFromLaterOnes) {
  Schedule schedule = plain();
  const std::vector<NodeId> order = first_runs(graph(), schedule);
  EXPECT_EQ(order.size(), graph().nodes().size());
  schedule.steps.push_back(step_of(Compute{order[1]}, Lane::compute));
  EXPECT_EQ(first_runs(graph(), schedule), order);
  schedule.steps.insert(schedule.steps.begin(), step_of(Compute{order[1]}, Lane::compute));
  EXPECT_EQ(first_runs(graph(), schedule).front(), order[1]);
}

TEST_F(ChainSummary, CountsATensorOnceHoweverOftenItLeaves) {
  const Summary twice = with(
      {step_of(Offload{made_by(0)}, Lane::copy_out), step_of(Fetch{made_by(0)}, Lane::copy_in),
       step_of(Offload{made_by(0)}, Lane::copy_out), step_of(Fetch{made_by(0)}, Lane::copy_in)});
  EXPECT_EQ(twice.swapped_tensors, 1U);
  EXPECT_EQ(twice.swap_outs, 2U);
  EXPECT_EQ(twice.swap_ins, 2U);
  EXPECT_EQ(twice.bytes_out, 2 * unit);
  EXPECT_EQ(twice.bytes_in, 2 * unit);
  EXPECT_TRUE(twice.moves());
}

TEST_F(ChainSummary, LeavesOutCopiesThatEveryStepMakes) {
  const TensorId gradient = made_by(graph().nodes().size() - 1);
  EXPECT_FALSE(may_move(graph(), gradient)) << "it is the graph's output";
  EXPECT_TRUE(may_move(graph(), made_by(0)));
  EXPECT_EQ(with({step_of(Offload{gradient}, Lane::copy_out)}).swap_outs, 0U);
}

TEST_F(ChainSummary, TellsWhatIsSwappedOutOrComputedAgainFromWhatStays) {
  Schedule schedule = plain();
  EXPECT_EQ(std::ranges::count(leaves_device(graph(), schedule), true), 0);
  schedule.steps.push_back(step_of(Offload{made_by(0)}, Lane::copy_out));
  schedule.steps.push_back(step_of(Compute{NodeId{1}}, Lane::compute));
  const std::vector<bool> leaves = leaves_device(graph(), schedule);
  EXPECT_TRUE(leaves[index_of(made_by(0))]);
  EXPECT_TRUE(leaves[index_of(made_by(1))]);
  EXPECT_EQ(std::ranges::count(leaves, true), 2);
}

TEST_F(ChainSummary, CountsNodesThatRunAgain) {
  const Summary again = with({step_of(Compute{NodeId{0}}, Lane::compute)});
  EXPECT_EQ(again.recomputed, 1U);
  EXPECT_TRUE(again.moves());
}

TEST_F(ChainSummary, CountsWhatGoesOnToTheDisk) {
  const TensorId first = made_by(0), second = made_by(1);
  const Summary two =
      with({step_of(Offload{first}, Lane::copy_out), step_of(Store{first}, Lane::disk),
            step_of(Offload{second}, Lane::copy_out), step_of(Store{second}, Lane::disk),
            step_of(Load{first}, Lane::disk), step_of(Store{first}, Lane::disk)});
  EXPECT_EQ(two.stored_tensors, 2U);
  EXPECT_EQ(two.bytes_stored, 3 * unit);
  EXPECT_EQ(two.bytes_loaded, unit);
}

}  // namespace
}  // namespace cnn::lms
