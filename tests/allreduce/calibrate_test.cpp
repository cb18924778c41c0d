#include "allreduce/calibrate.h"

#include <algorithm>
#include <chrono>
#include <gtest/gtest.h>
#include <string>
#include <thread>
#include <vector>

#include "allreduce/choose.h"
#include "allreduce/forwarding_transport.h"
#include "tests/allreduce/ranks.h"

namespace cnn::allreduce {
namespace {

using tests::as_threads;

constexpr SharedMemoryOptions small_segment{.segment_bytes = 1 << 22U};
constexpr CalibrationBudget quick{.seconds = 0.01, .bytes = 1 << 18U, .memory_bytes = 1 << 18U};

// Messages from and to one rank take long.
class SlowLink final : public ForwardingTransport {
 public:
  SlowLink(Transport& transport, int slow) : ForwardingTransport(transport), slow_(slow) {}
  void send(int to, std::size_t channel, std::span<const Bytes> pieces) override {
    constexpr std::size_t large = 1024;
    if ((rank() == slow_ || to == slow_) && pieces.front().size() > large) {
      std::this_thread::sleep_for(std::chrono::milliseconds(150));
    }
    ForwardingTransport::send(to, channel, pieces);
  }

 private:
  int slow_;
};

// Returns what each rank says after a measurement. slow: the rank with a slow link; -1: none.
std::vector<LinkSpeeds> speeds_of(const Topology& topology, const Links& assumed,
                                  const CalibrationBudget& limits, int slow) {
  std::vector<LinkSpeeds> found(topology.host_of.size());
  const auto errors = as_threads(topology.ranks(), small_segment, [&](Transport& transport) {
    SlowLink link(transport, slow);
    found[static_cast<std::size_t>(transport.rank())] =
        measure_links(link, *tests::usable_loops().back(), topology, assumed, limits);
  });
  EXPECT_EQ(errors, std::vector<std::string>(topology.host_of.size()));
  return found;
}

std::vector<Links> measured(const Topology& topology, const Links& assumed,
                            const CalibrationBudget& limits) {
  std::vector<Links> found;
  for (const LinkSpeeds& speeds : speeds_of(topology, assumed, limits, -1)) {
    found.push_back(speeds.links);
  }
  return found;
}

std::vector<double> values_of(const Links& links) {
  return {links.latency,
          links.post,
          links.add,
          links.rank,
          links.host,
          links.memory,
          links.barrier.value_or(-1)};
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
  EXPECT_TRUE(all[0].barrier);
  EXPECT_EQ(all[0].host, assumed.host);
}

TEST(Calibration, MeasuresBetweenHostsToo) {
  const Links assumed{.memory = 0x1p30};
  for (const Topology& topology :
       {ranks_on_hosts(2, 2), ranks_on_hosts(3, 1), Topology{{0, 0, 1}}}) {
    const std::vector<Links> all = measured(
        topology, assumed,
        {.seconds = 0.01, .bytes = 1 << 18U, .peers_memory = false, .memory_bytes = 1 << 18U});
    for (const Links& links : all) {
      EXPECT_EQ(values_of(links), values_of(all[0]));
    }
    EXPECT_GT(all[0].host, 0);
    EXPECT_EQ(all[0].memory, assumed.memory);
    EXPECT_FALSE(all[0].barrier);
  }
}

// Memory and line are what the hardware has; links that seem faster were measured in caches.
TEST(Calibration, GivesNoLinkMoreThanTheHardwareHas) {
  for (const LinkSpeeds& speeds : speeds_of(ranks_on_hosts(1, 2), {}, quick, -1)) {
    ASSERT_TRUE(speeds.limits.known());
    const double memory = speeds.limits.memory.back().bytes_per_second;
    EXPECT_EQ(speeds.links.memory, memory);
    EXPECT_EQ(speeds.sources.memory, Source::measured);
    EXPECT_LE(speeds.links.rank, memory / 3);
    EXPECT_EQ(speeds.sources.rank == Source::derived, speeds.links.rank == memory / 3);
    EXPECT_EQ(speeds.sources.host, Source::assumed);
    EXPECT_GE(speeds.links.latency, speeds.limits.hop);
    EXPECT_GE(speeds.links.barrier.value(), speeds.limits.hop);
  }
}

// Whatever the measurement was disturbed by.
TEST(Calibration, NeverMakesMessagesInsideAHostFasterThanSumsOverItsMemory) {
  for (const LinkSpeeds& speeds : speeds_of(ranks_on_hosts(1, 2), {}, quick, -1)) {
    for (const std::size_t elements : {100'000U, 16'000'000U}) {
      const std::vector<Candidate> all = candidates(
          ranks_on_hosts(1, 2), {.elements = elements, .peers_memory = true}, speeds.links);
      EXPECT_EQ(all.front().algorithm->name, "shared") << elements;
    }
  }
}

// A shaped link lets the first bytes pass at once, as a token bucket does.
class ShapedLink final : public ForwardingTransport {
 public:
  ShapedLink(Transport& transport, double bytes_per_second, std::size_t burst)
      : ForwardingTransport(transport), speed_(bytes_per_second), burst_(burst) {}
  void send(int to, std::size_t channel, std::span<const Bytes> pieces) override {
    const std::size_t bytes = pieces.front().size();
    if (bytes > burst_) {
      std::this_thread::sleep_for(
          std::chrono::duration<double>(static_cast<double>(bytes - burst_) / speed_));
    }
    ForwardingTransport::send(to, channel, pieces);
  }

 private:
  double speed_;
  std::size_t burst_;
};

TEST(Calibration, TakesALinkForNoFasterThanALongTransferIs) {
  constexpr double speed = 50e6;  // bytes a second: that of a busy Ethernet
  std::vector<double> found(2);
  const auto errors = as_threads(2, {.segment_bytes = 1 << 25U}, [&](Transport& transport) {
    ShapedLink link(transport, speed, 1 << 18U);
    CalibrationBudget limits = quick;
    limits.bytes = std::size_t{4} << 20U;
    limits.peers_memory = false;
    found[static_cast<std::size_t>(transport.rank())] =
        measure_links(link, *tests::usable_loops().back(), ranks_on_hosts(2, 1), {}, limits)
            .links.host;
  });
  EXPECT_EQ(errors, std::vector<std::string>(2));
  EXPECT_LT(found[0], 1.3 * speed);  // the burst and the rounding to a quarter of a power of two
  EXPECT_EQ(found[0], found[1]);
}

// Whoever is paired with it is slow in that round, but not in all.
TEST(Calibration, FindsTheHostWithTheSlowLink) {
  for (const Topology& topology :
       {ranks_on_hosts(3, 1), ranks_on_hosts(4, 1), ranks_on_hosts(5, 1), ranks_on_hosts(6, 1)}) {
    for (const LinkSpeeds& speeds : speeds_of(topology, {}, quick, 2)) {
      ASSERT_EQ(speeds.of_rank.size(), topology.host_of.size());
      EXPECT_EQ(std::ranges::min_element(speeds.of_rank) - speeds.of_rank.begin(), 2);
      EXPECT_LT(speeds.of_rank[2], 0.8);
    }
  }
}

TEST(Calibration, KeepsTheAssumedLinksForOneRank) {
  const Links assumed{.latency = 3e-6};
  EXPECT_EQ(values_of(measured(ranks_on_hosts(1, 1), assumed, quick)[0]), values_of(assumed));
}

}  // namespace
}  // namespace cnn::allreduce
