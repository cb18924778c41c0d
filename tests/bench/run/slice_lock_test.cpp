#include "bench/run/slice_lock.h"

#include <atomic>
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <optional>
#include <thread>
#include <unistd.h>
#include <vector>

#include "runtime/error.h"
#include "tests/support/files.h"

namespace cnn::bench {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

constexpr auto no_time = SliceLock::Clock::duration::zero();

// Returns as soon as a process waits for the current slice's end; the waiting process locks the
// second byte.
void wait_until_somebody_is_next(const std::string& path) {
  const int file = open(path.c_str(), O_RDWR);
  struct flock range {};
  do {
    range = {};
    range.l_type = F_WRLCK;
    range.l_whence = SEEK_SET;
    range.l_start = 1;
    range.l_len = 1;
    std::this_thread::yield();
  } while (fcntl(file, F_OFD_GETLK, &range) == 0 && range.l_type == F_UNLCK);
  close(file);
}

TEST(SliceLock, GoToTheOneThatWaits) {
  const tests::TemporaryFolder folder;
  const std::string path = folder / "turns";
  std::vector<std::string> order;
  SliceLock first(path, no_time);
  first.begin();
  order.emplace_back("first");
  std::thread other([&] {
    SliceLock second(path, no_time);
    second.begin();
    order.emplace_back("second");
    wait_until_somebody_is_next(path);
    second.pass();
    order.emplace_back("second again");
  });
  wait_until_somebody_is_next(path);
  first.pass();
  order.emplace_back("first again");
  wait_until_somebody_is_next(path);
  first.pass();
  other.join();
  EXPECT_THAT(order, ElementsAre("first", "second", "first again", "second again"));
  EXPECT_EQ(first.passed(), 2);
}

TEST(SliceLock, AreNeverTakenByTwoAtOnce) {
  const tests::TemporaryFolder folder;
  const std::string path = folder / "turns";
  std::atomic<int> working{0}, most{0};
  const auto work = [&] {
    SliceLock turns(path, no_time);
    turns.begin();
    for (int i = 0; i < 200; ++i) {
      const int now = ++working;
      most = std::max(most.load(), now);
      std::this_thread::yield();
      --working;
      turns.pass();
    }
  };
  std::thread other(work);
  work();
  other.join();
  EXPECT_EQ(most, 1);
}

TEST(SliceLock, NeverWaitForASingleProgram) {
  const tests::TemporaryFolder folder;
  SliceLock alone(folder / "turns", no_time);
  alone.begin();
  alone.pass();
  alone.pass();
  EXPECT_EQ(alone.passed(), 2);
  EXPECT_TRUE(alone.is_over());
  EXPECT_FALSE(SliceLock(folder / "turns", std::chrono::hours(1)).is_over());
}

TEST(SliceLock, PassOnWhenAProgramEnds) {
  const tests::TemporaryFolder folder;
  const std::string path = folder / "turns";
  {
    SliceLock ends(path, no_time);
    ends.begin();
  }
  SliceLock next(path, no_time);
  next.begin();
  EXPECT_EQ(next.passed(), 0);
}

TEST(SliceLock, AreOverForOneThatIsAskedToEndWhileItWaits) {
  const tests::TemporaryFolder folder;
  const std::string path = folder / "turns";
  std::optional<SliceLock> first(std::in_place, path, no_time);
  first->begin();
  std::atomic<bool> request{false};
  SliceLock second(path, no_time, [&] { return request.load(); });
  std::thread other([&] { second.begin(); });
  wait_until_somebody_is_next(path);
  request = true;
  other.join();  // returns although the first one still works
  second.pass();
  EXPECT_EQ(second.passed(), 0);
  EXPECT_FALSE(second.is_over());
  first.reset();
  SliceLock third(path, no_time);  // the process that left holds no lock
  third.begin();
}

TEST(SliceLock, GoToTheOneThatWaitsAndMayBeAskedToEnd) {
  const tests::TemporaryFolder folder;
  const std::string path = folder / "turns";
  const auto never = [] { return false; };
  SliceLock first(path, no_time, never);
  first.begin();
  std::atomic<bool> second_works{false};
  std::thread other([&] {
    SliceLock second(path, no_time, never);
    second.begin();
    second_works = true;
  });
  wait_until_somebody_is_next(path);
  EXPECT_FALSE(second_works);
  first.pass();
  other.join();
  EXPECT_TRUE(second_works);
  EXPECT_EQ(first.passed(), 1);
}

TEST(SliceLock, NeedAFileThatCanBeMade) {
  try {
    SliceLock turns("/no/such/folder/turns");
    FAIL() << "made";
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), HasSubstr("--take_turns=/no/such/folder/turns: No such file"));
  }
}

}  // namespace
}  // namespace cnn::bench
