#include "tests/support/allreduce/proof.h"

#include <cstddef>
#include <functional>
#include <gtest/gtest.h>
#include <random>
#include <string>
#include <variant>
#include <vector>

#include "allreduce/algorithm.h"
#include "tests/support/error_of.h"

namespace cnn::allreduce {
namespace {

using Plans = std::vector<RankPlan>;

Plans plans(const std::string& name, int ranks, const Options& options = {}) {
  return plans_of_all(find(name), ranks_on_hosts(1, ranks), 64, options);
}

std::string error_of_proof(const Plans& plans, const Claim& claim = {.elements = 64}) {
  return tests::error_of([&] { prove(plans, claim); });
}

template <class A>
A& first(RankPlan& plan, std::size_t skip = 0) {
  for (Action& action : plan.chunks[0].actions) {
    if (A* const found = std::get_if<A>(&action); found != nullptr && skip-- == 0) {
      return *found;
    }
  }
  throw Error("no such action");
}

void expect_refused(Plans wrong, const std::string& because) {
  EXPECT_NE(error_of_proof(wrong).find(because), std::string::npos) << error_of_proof(wrong);
}

TEST(Proof, RefusesAMessageThatNobodyReceives) {
  Plans ring = plans("ring", 3);
  std::vector<Action>& actions = ring[1].chunks[0].actions;
  actions.erase(actions.end() - 3);  // removes its last send
  expect_refused(ring, "never ends");
}

TEST(Proof, RefusesRanksThatWaitForOneAnother) {
  Plans pair = plans("doubling", 2);
  for (RankPlan& plan : pair) {  // each rank receives only after its send has arrived
    plan.chunks[0].actions.insert(plan.chunks[0].actions.begin() + 1, Wait{});
  }
  expect_refused(pair, "rank 0, chunk 0, action 1: never ends");
}

TEST(Proof, RefusesRangesThatDoNotMatch) {
  Plans ring = plans("ring", 4);
  --first<Send>(ring[2]).range.end;
  expect_refused(ring, "a message is not the range expected");
}

TEST(Proof, RefusesAContributionThatIsLostOrAddedTwice) {
  Plans twice = plans("direct", 4);
  Sum& sum = first<Sum>(twice[1]);
  twice[1].operands[sum.first_operand + 2] = twice[1].operands[sum.first_operand];
  expect_refused(twice, "not every contribution is in it exactly once");

  Plans lost = plans("direct", 4);
  --first<Sum>(lost[1]).operand_count;
  expect_refused(lost, "not every contribution is in it exactly once");
}

TEST(Proof, RefusesAReadOfWhatIsBeingWritten) {
  Plans direct = plans("direct", 4);
  // The message now overwrites the slice that the others add to.
  first<Receive>(direct[2]).scratch_offset.reset();
  expect_refused(direct, "rank 2");

  Plans hasty = plans("ring", 4);
  std::vector<Action>& actions = hasty[0].chunks[0].actions;
  actions.erase(actions.begin() + 2);  // removes the wait before the first sum
  expect_refused(hasty, "touches what a message that it has not waited for reads or writes");
}

TEST(Proof, RefusesChunksThatShareScratchWithoutWaiting) {
  Plans narrow = plans("ring", 4, {.chunks = 4, .window = 2});
  EXPECT_EQ(error_of_proof(narrow), "");
  narrow[3].chunks[2].after.clear();
  expect_refused(narrow, "chunks 0 and 2 of rank 3 may touch [0, ");
}

TEST(Proof, RefusesAMissingBarrier) {
  for (const std::size_t which : {0, 1}) {
    Plans shared = plans("shared", 3);
    EXPECT_EQ(error_of_proof(shared), "");
    for (RankPlan& plan : shared) {
      plan.chunks[0].actions.erase(plan.chunks[0].actions.begin() +
                                   static_cast<std::ptrdiff_t>(2 * which));
    }
    // The sums write disjoint slices, so a missing barrier alone causes no conflict. A send of a
    // rank's buffer stands for a rank that arrives or leaves early and uses it.
    for (std::size_t rank = 0; rank < 3; ++rank) {
      const Range all{0, 64};
      std::vector<Action>& actions = shared[rank].chunks[0].actions;
      const auto place = which == 0 ? actions.begin() : actions.end();
      if (rank < 2) {
        const Action one = rank == 0 ? Action(Send{1, all}) : Action(Receive{0, all, 0});
        actions.insert(actions.insert(place, Wait{}), one);
      }
      shared[rank].scratch = 64;
    }
    expect_refused(shared, "at the same time");
  }
}

TEST(Proof, RefusesAnotherOrderThanTheOneClaimed) {
  EXPECT_NE(error_of_proof(plans("ring", 4), {64, Order::rank}), "");
  EXPECT_NE(error_of_proof(plans("direct", 4), {64, Order::tree}), "");
  EXPECT_EQ(error_of_proof(plans("direct", 4), {64, Order::rank}), "");
  EXPECT_EQ(error_of_proof(plans("direct", 4, {.order = Order::tree}), {64, Order::tree}), "");
}

TEST(Proof, RefusesASumThatIsFinishedTwiceOrNever) {
  Plans never = plans("direct", 3);
  first<Sum>(never[0]).last = false;
  expect_refused(never, "the sum is not finished");
  Plans twice = plans("ring", 3);
  for (RankPlan& plan : twice) {
    first<Sum>(plan).last = true;
  }
  expect_refused(twice, "a sum that was finished is added to another");
}

// The proof finds every missing action that matters.
TEST(Proof, FindsEveryActionLeftOut) {
  for (const std::string name : {"ring", "direct", "doubling", "halving", "tree"}) {
    const Plans right = plans(name, 5);
    for (std::size_t rank = 0; rank < right.size(); ++rank) {
      for (std::size_t chunk = 0; chunk < right[rank].chunks.size(); ++chunk) {
        const std::size_t last = right[rank].chunks[chunk].actions.size() - 1;
        // The last action may be a wait, which the end of the list implies.
        for (std::size_t i = 0; i < last; ++i) {
          Plans wrong = right;
          auto& actions = wrong[rank].chunks[chunk].actions;
          const bool is_wait = std::holds_alternative<Wait>(actions[i]);
          actions.erase(actions.begin() + static_cast<std::ptrdiff_t>(i));
          // A missing wait may be harmless: some waits only separate two messages that could run
          // concurrently.
          EXPECT_TRUE(is_wait || !error_of_proof(wrong).empty())
              << name << " rank " << rank << " action " << i;
        }
      }
    }
  }
}

}  // namespace
}  // namespace cnn::allreduce
