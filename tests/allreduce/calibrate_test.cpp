#include "allreduce/calibrate.h"

#include <cmath>
#include <gtest/gtest.h>
#include <limits>
#include <string>
#include <vector>

#include "allreduce/numbers.h"
#include "tests/allreduce/ranks.h"

namespace cnn::allreduce {
namespace {

using tests::as_threads;

constexpr PeerMemoryOptions small_room{.room = 1 << 22U};
constexpr CalibrationLimits quick{.seconds = 0.01, .bytes = 1 << 18U};

// What each rank says after a measurement.
std::vector<Links> measured(const Topology& topology, const Links& assumed,
                            const CalibrationLimits& limits) {
  std::vector<Links> found(topology.host_of.size());
  const auto errors = as_threads(topology.ranks(), small_room, [&](Transport& transport) {
    found[static_cast<std::size_t>(transport.rank())] =
        measure_links(transport, *tests::usable_loops().back(), topology, assumed, limits);
  });
  EXPECT_EQ(errors, std::vector<std::string>(topology.host_of.size()));
  return found;
}

std::vector<double> values_of(const Links& links) {
  return {links.latency,
          links.post,
          links.add,
          links.rank,
          links.host,
          links.memory,
          links.meeting.value_or(-1)};
}

TEST(Numbers, OfAllRanksReachAllToTheBit) {
  const auto errors = as_threads(3, small_room, [](Transport& transport) {
    Numbers numbers(transport, *tests::usable_loops().back(), ranks_on_hosts(1, 3), 2);
    for (int round = 0; round < 3; ++round) {
      const double mine[] = {transport.rank() + 0.1, std::ldexp(-1.0, -1000 * transport.rank())};
      const std::span<const double> all = numbers.gather(mine);
      ASSERT_EQ(all.size(), 6U);
      for (int rank = 0; rank < 3; ++rank) {
        EXPECT_EQ(all[static_cast<std::size_t>(2 * rank)], rank + 0.1);
        EXPECT_EQ(all[static_cast<std::size_t>(2 * rank + 1)], std::ldexp(-1.0, -1000 * rank));
      }
      numbers.meet();
    }
    const double infinite = std::numeric_limits<double>::infinity();
    EXPECT_EQ(numbers.gather({&infinite, 1})[2], infinite);
    const double many[] = {1, 2, 3};
    EXPECT_THROW(numbers.gather(many), Error);
  });
  EXPECT_EQ(errors, std::vector<std::string>(3));
}

TEST(Calibration, GivesAllRanksTheSameLinks) {
  const Links assumed{.host = 3e9};
  const std::vector<Links> all = measured(ranks_on_hosts(1, 3), assumed, quick);
  for (const Links& links : all) {
    EXPECT_EQ(values_of(links), values_of(all[0]));
  }
  for (const double value : values_of(all[0])) {
    EXPECT_TRUE(std::isfinite(value) && value >= 0) << value;
  }
  EXPECT_GT(all[0].memory, 0);
  EXPECT_TRUE(all[0].meeting);
  EXPECT_EQ(all[0].host, assumed.host);
}

TEST(Calibration, MeasuresBetweenHostsToo) {
  const Links assumed{.memory = 0x1p30};
  for (const Topology& topology :
       {ranks_on_hosts(2, 2), ranks_on_hosts(3, 1), Topology{{0, 0, 1}}}) {
    const std::vector<Links> all =
        measured(topology, assumed, {.seconds = 0.01, .bytes = 1 << 18U, .peers_memory = false});
    for (const Links& links : all) {
      EXPECT_EQ(values_of(links), values_of(all[0]));
    }
    EXPECT_GT(all[0].host, 0);
    EXPECT_EQ(all[0].memory, assumed.memory);
    EXPECT_FALSE(all[0].meeting);
  }
}

TEST(Calibration, OfOneRankKeepsWhatIsAssumed) {
  const Links assumed{.latency = 3e-6};
  EXPECT_EQ(values_of(measured(ranks_on_hosts(1, 1), assumed, quick)[0]), values_of(assumed));
}

TEST(Calibration, OfTheFirstRankIsForAll) {
  const Topology topology = ranks_on_hosts(1, 2);
  const auto errors = as_threads(2, small_room, [&](Transport& transport) {
    const Links mine{.latency = 1e-6 * (1 + transport.rank()), .meeting = 5e-8};
    const Links all = links_of_first(transport, *tests::usable_loops().back(), topology, mine);
    EXPECT_EQ(all.latency, 1e-6);
    EXPECT_EQ(all.meeting, 5e-8);
  });
  EXPECT_EQ(errors, std::vector<std::string>(2));
}

}  // namespace
}  // namespace cnn::allreduce
