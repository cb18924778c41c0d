#include "lms/articulation_points.h"

#include <algorithm>
#include <cstdint>
#include <gtest/gtest.h>
#include <vector>

#include "tests/lms/problem.h"

namespace cnn::lms {
namespace {

TEST(ArticulationPoints, AreTheOutputsOfResidualBlocks) {
  constexpr int blocks = 8;
  const PlanningProblem problem = planning_problem(tests::residual_chain(blocks).request());
  const std::vector<std::uint32_t> points = articulation_points(problem);
  ASSERT_EQ(points.size(), blocks) << "the last output is read by the backward pass alone";
  for (const std::uint32_t r : points) {
    ASSERT_EQ(problem.roots[r].makers.size(), 1U);
    EXPECT_EQ(problem.nodes[problem.roots[r].makers.front()].seconds, 1) << "a sum, or the stem";
  }
  EXPECT_TRUE(std::ranges::is_sorted(points));
}

TEST(ArticulationPoints, AreAllMapsOfAChain) {
  EXPECT_EQ(articulation_points(planning_problem(tests::uniform_chain(5).request())).size(), 4U);
}

}  // namespace
}  // namespace cnn::lms
