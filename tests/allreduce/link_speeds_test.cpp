#include <gtest/gtest.h>
#include <string>
#include <vector>

#include "allreduce/calibrate.h"
#include "tests/allreduce/ranks.h"

namespace cnn::allreduce {
namespace {

// Returns what the last of so many ranks gets from rank 0. The others pass other speeds.
LinkSpeeds broadcast(const LinkSpeeds& speeds, int ranks) {
  LinkSpeeds got;
  const auto errors =
      tests::as_threads(ranks, {.segment_bytes = 1 << 22U}, [&](Transport& transport) {
        const LinkSpeeds mine = transport.rank() == 0 ? speeds : LinkSpeeds{.links = {.post = 99}};
        const LinkSpeeds all = links_of_rank_0(transport, ranks_on_hosts(1, ranks), mine);
        if (transport.rank() + 1 == ranks) {
          got = all;
        }
      });
  EXPECT_EQ(errors, std::vector<std::string>(static_cast<std::size_t>(ranks)));
  return got;
}

TEST(LinkSpeedsOfRank0, AreAllThatIsKnown) {
  const LinkSpeeds all = broadcast({.links = {.latency = 1e-6,
                                              .post = 2e-7,
                                              .add = 3e-11,
                                              .rank = 4e9,
                                              .host = 5e9,
                                              .memory = 6e9,
                                              .remote_memory = 7e9,
                                              .barrier = 5e-8},
                                    .of_rank = {1, 0.5, 0.25},
                                    .sources = {.rank = Source::derived,
                                                .host = Source::measured,
                                                .memory = Source::flag,
                                                .remote_memory = Source::unknown},
                                    .limits = {.host_of = {0, 1, 0},
                                               .memory = {{1e3, 4e10}, {1e6, 1e10}},
                                               .line = 1e9,
                                               .line_source = Source::interface,
                                               .hop = 2e-7}},
                                   3);
  EXPECT_EQ(all.links.latency, 1e-6);
  EXPECT_EQ(all.links.post, 2e-7);
  EXPECT_EQ(all.links.add, 3e-11);
  EXPECT_EQ(all.links.rank, 4e9);
  EXPECT_EQ(all.links.host, 5e9);
  EXPECT_EQ(all.links.memory, 6e9);
  EXPECT_EQ(all.links.remote_memory, 7e9);
  EXPECT_EQ(all.links.barrier, 5e-8);
  EXPECT_EQ(all.of_rank, (std::vector<double>{1, 0.5, 0.25}));
  EXPECT_EQ(all.sources.rank, Source::derived);
  EXPECT_EQ(all.sources.host, Source::measured);
  EXPECT_EQ(all.sources.memory, Source::flag);
  EXPECT_EQ(all.sources.remote_memory, Source::unknown);
  EXPECT_EQ(all.limits.host_of, (std::vector{0, 1, 0}));
  ASSERT_EQ(all.limits.memory.size(), 2U);
  EXPECT_EQ(all.limits.memory[0].bytes, 1e3);
  EXPECT_EQ(all.limits.memory[0].bytes_per_second, 4e10);
  EXPECT_EQ(all.limits.memory[1].bytes, 1e6);
  EXPECT_EQ(all.limits.memory[1].bytes_per_second, 1e10);
  EXPECT_EQ(all.limits.line, 1e9);
  EXPECT_EQ(all.limits.line_source, Source::interface);
  EXPECT_EQ(all.limits.hop, 2e-7);
}

TEST(LinkSpeedsOfRank0, LeaveUnknownWhatIsUnknown) {
  const LinkSpeeds all = broadcast({.links = {.rank = 0}}, 2);
  EXPECT_EQ(all.links.rank, 0) << "which callers give a meaning";
  EXPECT_FALSE(all.links.barrier);
  EXPECT_FALSE(all.links.remote_memory);
  EXPECT_TRUE(all.of_rank.empty()) << "all links are alike";
  EXPECT_TRUE(all.limits.host_of.empty());
  EXPECT_FALSE(all.limits.known());
  EXPECT_EQ(all.limits.line_source, Source::unknown);
  EXPECT_EQ(all.sources.rank, Source::assumed);
}

TEST(LinkSpeedsOfRank0, AreTheSameOnARankThatIsAlone) {
  const LinkSpeeds all = broadcast({.links = {.post = 3e-7}, .limits = {.hop = 1e-6}}, 1);
  EXPECT_EQ(all.links.post, 3e-7);
  EXPECT_EQ(all.limits.hop, 1e-6);
}

TEST(LinkSpeedsOfRank0, HaveRoomForEverySizeOfMemory) {
  LinkSpeeds speeds;
  for (int power = 0; power < 40; ++power) {
    speeds.limits.memory.push_back({static_cast<double>(std::uint64_t{1} << unsigned(power)), 1e9});
  }
  EXPECT_EQ(broadcast(speeds, 2).limits.memory.size(), 40U);
}

}  // namespace
}  // namespace cnn::allreduce
