#include "allreduce/mpi/heartbeats.h"

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <gtest/gtest.h>
#include <mpi.h>
#include <mutex>
#include <numeric>
#include <thread>
#include <vector>

#include "allreduce/all_gather.h"
#include "allreduce/mpi/world.h"
#include "tests/allreduce/mpi/ranks.h"

namespace cnn::allreduce {
namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

constexpr milliseconds interval{5};

// Heartbeats over a communicator of their own, with every rank declared to be on a host of its own.
// Each rank watches at least the rank before it.
class HeartbeatsOfRanks : public ::testing::Test {
 public:
  HeartbeatsOfRanks() {
    const auto turn = world_.lock();
    MPI_Comm_dup(MPI_COMM_WORLD, &comm_);
  }
  ~HeartbeatsOfRanks() override {
    barrier(world_);  // afterwards no rank sends
    const auto turn = world_.lock();
    MPI_Comm_free(&comm_);
  }

  Heartbeats make(std::function<void()> on_poll = [] {}) {
    std::vector<int> host_of(static_cast<std::size_t>(world_.ranks()));
    std::iota(host_of.begin(), host_of.end(), 0);
    return {comm_, FailureDetector(host_of, world_.rank()), *world_.lock().mutex(), interval,
            std::move(on_poll)};
  }
  int rank() const { return world_.rank(); }
  int ranks() const { return world_.ranks(); }
  int watched() const { return (rank() + ranks() - 1) % ranks(); }

  // Waits for the condition for much longer than heartbeats take.
  static bool comes(const std::function<bool()>& condition) {
    const Clock::time_point latest = Clock::now() + std::chrono::seconds(10);
    while (!condition() && Clock::now() < latest) {
      std::this_thread::sleep_for(milliseconds(1));
    }
    return condition();
  }
  void meet() { barrier(world_); }
  std::unique_lock<std::recursive_mutex> lock() { return world_.lock(); }

 private:
  MpiWorld& world_ = dynamic_cast<MpiWorld&>(tests::this_world());
  MPI_Comm comm_ = MPI_COMM_NULL;
};

TEST_F(HeartbeatsOfRanks, CarryTheProgressOfTheRankThatIsWatched) {
  Progress mine = 100 + static_cast<std::uint64_t>(rank());
  Heartbeats heartbeats = make();
  EXPECT_EQ(heartbeats.progress_of(rank()), 0U) << "a rank does not report its own progress";
  heartbeats.publish(&mine);
  const auto expected = [&](std::uint64_t from) {
    return from + static_cast<std::uint64_t>(watched());
  };
  EXPECT_TRUE(comes([&] { return heartbeats.progress_of(watched()) == expected(100); }));
  meet();  // all ranks have seen the first value
  mine = 200 + static_cast<std::uint64_t>(rank());
  EXPECT_TRUE(comes([&] { return heartbeats.progress_of(watched()) == expected(200); }));
  meet();
  heartbeats.publish(nullptr);  // `mine` goes out of scope before the heartbeats do
}

// Rank 1 waits for rank 0, and rank 2 learns the end of that chain.
TEST_F(HeartbeatsOfRanks, TellWhomAWatchedRankWaitsFor) {
  if (ranks() < 3) {
    GTEST_SKIP() << "needs a third rank";
  }
  Heartbeats heartbeats = make();
  heartbeats.wait_for(rank() == 1 ? 0 : -1);
  if (rank() == 2) {
    EXPECT_TRUE(comes([&] { return heartbeats.root_of(1) == 0; }));
  }
  meet();
  heartbeats.wait_for(-1);
  if (rank() == 2) {
    EXPECT_TRUE(comes([&] { return heartbeats.root_of(1) == 1; }));
  }
  meet();
}

TEST_F(HeartbeatsOfRanks, AreOverdueOnceTheirSenderHasEnded) {
  Heartbeats heartbeats = make();
  Progress alive = 1;
  heartbeats.publish(&alive);
  EXPECT_TRUE(comes([&] { return heartbeats.progress_of(watched()) == 1; }));
  meet();
  if (rank() == 0) {
    const auto turn = lock();
    heartbeats.end();
  }
  if (rank() == 1) {
    EXPECT_TRUE(comes([&] {
      const FailureDetector::Overdue overdue = heartbeats.most_overdue();
      return overdue.rank == 0 && overdue.since > 20 * interval;
    }));
  }
  meet();
  heartbeats.publish(nullptr);
}

TEST_F(HeartbeatsOfRanks, PollUntilTheyAreStopped) {
  std::atomic<int> polls = 0;
  Heartbeats heartbeats = make([&] { ++polls; });
  EXPECT_TRUE(comes([&] { return polls >= 3; }));
  heartbeats.stop();
  const int before = polls;
  std::this_thread::sleep_for(4 * interval);
  EXPECT_EQ(polls, before);
}

}  // namespace
}  // namespace cnn::allreduce
