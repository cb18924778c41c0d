#include "bench/all_reduce/ranks.h"

#include <atomic>
#include <cstddef>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <mutex>
#include <set>
#include <thread>
#include <vector>

#include "bench/machine/cpu_backend.h"
#include "runtime/error.h"
#include "tests/support/error_of.h"

namespace cnn::bench {
namespace {

using testing::HasSubstr;

constexpr std::size_t segment_bytes = std::size_t{1} << 20U;

Config of_ranks(int ranks) {
  Config config;
  config.num_gpus = ranks;
  return config;
}

void run(int ranks, const RankWork& work) {
  const Config config = of_ranks(ranks);
  run_as_threads(config, cpu_backend().make(config), segment_bytes, work);
}

TEST(RunAsThreads, DoesTheWorkOnceForEachRankOnAThreadOfItsOwn) {
  std::mutex mutex;
  std::set<int> ranks;
  std::set<std::thread::id> threads;
  run(3, [&](const RankEnvironment& environment) {
    const std::lock_guard lock(mutex);
    EXPECT_TRUE(ranks.insert(environment.transport.rank()).second);
    threads.insert(std::this_thread::get_id());
    EXPECT_EQ(environment.transport.ranks(), 3);
    EXPECT_EQ(environment.topology.host_of, (std::vector{0, 0, 0}));
    EXPECT_EQ(environment.world, nullptr) << "no launcher has started them";
    EXPECT_EQ(environment.device, nullptr) << "a CPU exchanges in its own memory";
  });
  EXPECT_EQ(ranks, (std::set{0, 1, 2}));
  EXPECT_EQ(threads.size(), 3U);
  EXPECT_FALSE(threads.contains(std::this_thread::get_id()));
}

TEST(RunAsThreads, SharesTheMemoryOfAllRanks) {
  std::atomic<int> sum = 0;
  run(2, [&](const RankEnvironment& environment) {
    allreduce::Transport& transport = environment.transport;
    const int rank = transport.rank(), other = 1 - rank;
    const allreduce::Bytes own = transport.allocate_shared(1);
    own[0] = static_cast<std::byte>(10 + rank);
    transport.arrive({&other, 1}, 0);
    while (!transport.arrived({&other, 1}, 0)) {
      transport.idle(other);
    }
    transport.busy();
    sum += static_cast<int>(*transport.peer_address(other, own.data())) * (rank + 1);
  });
  EXPECT_EQ(sum, 11 * 1 + 10 * 2);
}

// Rank 0 loses rank 1, which has failed by itself: only that tells the user what to do.
TEST(RunAsThreads, ThrowsTheErrorOfTheRankThatFailedByItself) {
  EXPECT_THAT(tests::error_of([] {
                run(2, [](const RankEnvironment& environment) {
                  if (environment.transport.rank() == 0) {
                    throw allreduce::PeerLost(1, "rank 1 is lost");
                  }
                  throw Error("out of paper");
                });
              }),
              HasSubstr("out of paper"));
}

TEST(RunAsThreads, RefusesADeviceThatCannotBeDivided) {
  Backend whole;
  whole.for_rank = nullptr;
  EXPECT_THAT(tests::error_of([&] {
                run_as_threads(of_ranks(2), whole, segment_bytes, [](const RankEnvironment&) {});
              }),
              HasSubstr("--num_gpus: this device cannot be divided"));
}

}  // namespace
}  // namespace cnn::bench
