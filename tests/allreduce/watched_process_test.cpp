#include "allreduce/watched_process.h"

#include <chrono>
#include <csignal>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>

namespace cnn::allreduce {
namespace {

using namespace std::chrono_literals;

TEST(WatchedProcess, IsSeenToStopAndToGoOnAndToEnd) {
  const pid_t child = ::fork();
  if (child == 0) {
    while (true) {
      ::pause();
    }
  }
  WatchedProcess process(child);
  const auto until = [&process](bool stopped) {
    while ((process.stopped() > 0s) != stopped) {
      std::this_thread::sleep_for(1ms);
    }
  };
  EXPECT_EQ(process.stopped(), 0s);
  ::kill(child, SIGSTOP);
  until(true);
  ::kill(child, SIGCONT);
  until(false);
  EXPECT_FALSE(process.ended());
  ::kill(child, SIGKILL);
  ::waitpid(child, nullptr, 0);
  EXPECT_TRUE(process.ended());
  EXPECT_EQ(process.stopped(), 0s);
}

TEST(WatchedProcess, NeverEndsNorStopsForProcessZero) {
  WatchedProcess nobody(0);
  EXPECT_FALSE(nobody.ended());
  EXPECT_EQ(nobody.stopped(), 0s);
}

}  // namespace
}  // namespace cnn::allreduce
