#include <gtest/gtest.h>

#include "bench/machine/step_costs.h"
#include "bench/plan/lms_plan.h"
#include "tests/support/swapping_step.h"

namespace cnn::bench {
namespace {

TEST(ExpectedCosts, GoByWhatIsExpectedOfTheDeviceAndItsLink) {
  const StepPlan plan = tests::swapping_plan();
  Backend backend;
  const Costs of_one_core = expected_costs(plan, backend);
  backend.expected = Ceilings{.flops_per_second = 800e12, .bytes_per_second = 3e12};
  backend.link = Link{.out = 50e9, .in = 40e9, .both = 60e9};
  const Costs costs = expected_costs(plan, backend);
  const std::vector<NodeCost> nodes = node_costs(*plan.graph, *backend.expected, plan.specs);
  ASSERT_EQ(costs.seconds.size(), nodes.size());
  for (std::size_t n = 0; n < nodes.size(); ++n) {
    EXPECT_EQ(costs.seconds[n], nodes[n].seconds);
    EXPECT_LT(costs.seconds[n], of_one_core.seconds[n]);
  }
  EXPECT_EQ(costs.out_bytes_per_second, 50e9);
  EXPECT_EQ(costs.in_bytes_per_second, 40e9);
  EXPECT_EQ(costs.both_bytes_per_second, 60e9);
}

}  // namespace
}  // namespace cnn::bench
