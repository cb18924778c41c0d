#include "lms/task_graph.h"

#include <atomic>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <latch>
#include <mutex>
#include <stdexcept>

#include "runtime/error.h"

namespace cnn::lms {
namespace {

using ::testing::ElementsAre;
using ::testing::ThrowsMessage;

// Notes the numbers of tasks in the order in which they run.
class TaskLog {
 public:
  Task task(int number, std::vector<std::size_t> needs = {}) {
    return {.run =
                [this, number] {
                  const std::lock_guard lock(mutex_);
                  numbers_.push_back(number);
                },
            .needs = std::move(needs)};
  }
  const std::vector<int>& numbers() const { return numbers_; }

 private:
  std::mutex mutex_;
  std::vector<int> numbers_;
};

TEST(TaskGraph, RunsTasksInOrderOnOneThread) {
  TaskLog log;
  run_tasks({log.task(0), log.task(1), log.task(2, {0})}, 1);
  EXPECT_THAT(log.numbers(), ElementsAre(0, 1, 2));
}

TEST(TaskGraph, HasNothingToDoWithoutTasks) { EXPECT_NO_THROW(run_tasks({}, 4)); }

TEST(TaskGraph, BeginsATaskOnceThoseThatItNeedsHaveEnded) {
  constexpr std::size_t count = 200;
  std::vector<std::atomic<bool>> has_ended(count);
  std::atomic<int> too_early = 0;
  std::vector<Task> tasks;
  for (std::size_t t = 0; t < count; ++t) {
    std::vector<std::size_t> needs;
    if (t > 0) {
      needs = {t / 2, t - 1 - (t - 1) % 7};
    }
    tasks.push_back({.run =
                         [&, needs, t] {
                           for (const std::size_t earlier : needs) {
                             too_early += has_ended[earlier] ? 0 : 1;
                           }
                           has_ended[t] = true;
                         },
                     .needs = needs});
  }
  run_tasks(tasks, 8);
  EXPECT_EQ(too_early, 0);
  for (const std::atomic<bool>& ended : has_ended) {
    EXPECT_TRUE(ended);
  }
}

// Each waits for the other, which takes two threads.
TEST(TaskGraph, RunsTasksBesideEachOther) {
  std::latch both(2);
  const Task task{.run = [&] { both.arrive_and_wait(); }, .needs = {}};
  run_tasks({task, task}, 2);
  EXPECT_TRUE(both.try_wait());
}

TEST(TaskGraph, BeginsNothingAfterAnException) {
  TaskLog log;
  const Task fails{.run = [] { throw std::runtime_error("a reason"); }, .needs = {}};
  EXPECT_THAT(
      [&] {
        run_tasks({log.task(0), fails, log.task(2), log.task(3, {1})}, 1);
      },
      ThrowsMessage<std::runtime_error>("a reason"));
  EXPECT_THAT(log.numbers(), ElementsAre(0));
}

TEST(TaskGraph, EndsWhereATaskWaitsForOneThatFails) {
  TaskLog log;
  const Task fails{.run = [] { throw std::runtime_error("a reason"); }, .needs = {}};
  EXPECT_THAT(
      [&] {
        run_tasks({fails, log.task(1, {0}), log.task(2, {1})}, 4);
      },
      ThrowsMessage<std::runtime_error>("a reason"));
  EXPECT_TRUE(log.numbers().empty());
}

TEST(TaskGraph, RefusesTasksThatNeedLaterOnes) {
  TaskLog log;
  EXPECT_THROW(run_tasks({log.task(0, {1}), log.task(1)}, 1), Error);
  EXPECT_THROW(run_tasks({log.task(0, {0})}, 1), Error);
}

}  // namespace
}  // namespace cnn::lms
