#include <cstddef>
#include <gtest/gtest.h>
#include <vector>

#include "tests/allreduce/plans.h"

namespace cnn::allreduce {
namespace {

using tests::actions_of;
using tests::destinations_of;
using tests::proved;
using tests::sizes_sent;

// One host, whose ranks have links of these relative speeds.
Topology with_links(std::vector<double> links) {
  Topology topology = ranks_on_hosts(1, static_cast<int>(links.size()));
  topology.link = std::move(links);
  return topology;
}

// Returns the number of elements that each rank sums.
std::vector<std::size_t> summed(const Topology& topology, std::size_t elements) {
  std::vector<std::size_t> result;
  for (const RankPlan& plan : plans_of_all(find("weighted"), topology, elements, {})) {
    std::size_t of_rank = 0;
    for (const Sum& sum : actions_of<Sum>(plan)) {
      of_rank += sum.range.size();
    }
    result.push_back(of_rank);
  }
  return result;
}

// All links together need 2 (n - 1) / 3.75 = 1.6 buffer times. In 1.6 a link of speed b moves
// 1 + 2 s buffers with s = (1.6 b - 1) / 2: 0.3 for b = 1 and 0.1 for b = 0.75.
TEST(Weighted, GivesEachRankTheShareThatItsLinkMovesInTheSameTime) {
  EXPECT_EQ(summed(with_links({1, 1, 1, 0.75}), 1000),
            (std::vector<std::size_t>{300, 300, 300, 100}));
}

TEST(Weighted, LetsALinkThatIsTheBottleneckSumNothing) {
  const Topology topology = with_links({1, 1, 0.5});
  EXPECT_EQ(summed(topology, 1000), (std::vector<std::size_t>{500, 500, 0}));
  EXPECT_EQ(proved("weighted", topology, 1000)[2].elements_sent, 1000U);
}

TEST(Weighted, SendsAsDirectExchangeOverEqualLinks) {
  for (int rank = 0; rank < 5; ++rank) {
    const auto plan_of = [&](const char* name) {
      return make_plan(find(name), ranks_on_hosts(1, 5), rank, 1000, {});
    };
    EXPECT_EQ(destinations_of(plan_of("weighted")), destinations_of(plan_of("direct")));
    EXPECT_EQ(sizes_sent(plan_of("weighted")), sizes_sent(plan_of("direct")));
  }
}

TEST(Weighted, HalvesTheBufferBetweenTwoRanksOfAnySpeed) {
  EXPECT_EQ(summed(with_links({1, 0.1}), 1000), (std::vector<std::size_t>{500, 500}));
}

}  // namespace
}  // namespace cnn::allreduce
