#include "bench/ranks/shared_link.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace cnn::bench {
namespace {

TEST(SharedLink, IsDividedAmongTheRanksOfAProcess) {
  Config config;
  config.lms.emulate_link_gbps = {8, 4, 12};
  EXPECT_THAT(with_shared_link(config, nullptr).lms.emulate_link_gbps,
              testing::ElementsAre(8, 4, 12));
  config.num_gpus = 4;
  EXPECT_THAT(with_shared_link(config, nullptr).lms.emulate_link_gbps,
              testing::ElementsAre(2, 1, 3));
}

TEST(SharedLink, IsThatOfTheDeviceWhereNothingIsEmulated) {
  Config config;
  config.num_gpus = 4;
  EXPECT_TRUE(with_shared_link(config, nullptr).lms.emulate_link_gbps.empty());
}

}  // namespace
}  // namespace cnn::bench
