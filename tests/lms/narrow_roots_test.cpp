#include "lms/narrow_roots.h"

#include <algorithm>
#include <cstdint>
#include <gtest/gtest.h>
#include <vector>

#include "tests/lms/problem.h"

namespace cnn::lms {
namespace {

TEST(NarrowRoots, AreTheOutputsOfResidualBlocks) {
  constexpr int blocks = 8;
  const PlanningProblem problem = planning_problem(tests::residual_chain(blocks).request());
  const std::vector<std::uint32_t> narrow = narrow_roots(problem);
  ASSERT_EQ(narrow.size(), blocks) << "the last output is read by the backward pass alone";
  for (const std::uint32_t r : narrow) {
    ASSERT_EQ(problem.roots[r].makers.size(), 1U);
    EXPECT_EQ(problem.nodes[problem.roots[r].makers.front()].seconds, 1) << "a sum, or the stem";
  }
  EXPECT_TRUE(std::ranges::is_sorted(narrow));
}

TEST(NarrowRoots, AreAllMapsOfAChain) {
  EXPECT_EQ(narrow_roots(planning_problem(tests::uniform_chain(5).request())).size(), 4U);
}

}  // namespace
}  // namespace cnn::lms
