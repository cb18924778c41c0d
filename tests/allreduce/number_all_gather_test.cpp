#include "allreduce/number_all_gather.h"

#include <cmath>
#include <cstddef>
#include <gtest/gtest.h>
#include <limits>
#include <span>
#include <string>
#include <vector>

#include "tests/allreduce/ranks.h"

namespace cnn::allreduce {
namespace {

TEST(NumberAllGather, GathersTheNumbersOfAllRanksToTheBit) {
  const auto errors = tests::as_threads(3, {.segment_bytes = 1 << 20U}, [](Transport& transport) {
    NumberAllGather numbers(transport, *tests::usable_loops().back(), ranks_on_hosts(1, 3), 2);
    for (int round = 0; round < 3; ++round) {
      const double mine[] = {transport.rank() + 0.1, std::ldexp(-1.0, -1000 * transport.rank())};
      const std::span<const double> all = numbers.gather(mine);
      ASSERT_EQ(all.size(), 6U);
      for (int rank = 0; rank < 3; ++rank) {
        EXPECT_EQ(all[static_cast<std::size_t>(2 * rank)], rank + 0.1);
        EXPECT_EQ(all[static_cast<std::size_t>(2 * rank + 1)], std::ldexp(-1.0, -1000 * rank));
      }
      numbers.barrier();
    }
    const double infinite = std::numeric_limits<double>::infinity();
    EXPECT_EQ(numbers.gather({&infinite, 1})[2], infinite);
    const double many[] = {1, 2, 3};
    EXPECT_THROW(numbers.gather(many), Error);
  });
  EXPECT_EQ(errors, std::vector<std::string>(3));
}

}  // namespace
}  // namespace cnn::allreduce
