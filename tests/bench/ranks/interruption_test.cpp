#include "bench/ranks/interruption.h"

#include <csignal>
#include <gtest/gtest.h>
#include <optional>
#include <thread>
#include <unistd.h>

namespace cnn::bench {
namespace {

TEST(Interruption, LetsAProcessThatEndsByItselfEnd) {
  const Console console;
  std::optional<Interruption> interruption(std::in_place, console);
  interruption->disregard();
  for (int i = 0; i < 3; ++i) {
    std::raise(SIGTERM);
  }
  EXPECT_FALSE(interruption->requested());
  interruption.reset();
  std::raise(SIGTERM);  // ignored, otherwise the test would end here
  std::signal(SIGTERM, SIG_DFL);
}

TEST(Interruption, TakesTheLaunchersSigcontForTheSigtermThatFollows) {
  const Console console;
  Interruption interruption(console);
  std::raise(SIGCONT);
  EXPECT_FALSE(interruption.requested());
  interruption.heed_announcement(::getppid());
  std::raise(SIGCONT);  // sent by this process instead of the launcher
  EXPECT_FALSE(interruption.requested());
  interruption.heed_announcement(::getpid());
  std::raise(SIGCONT);
  EXPECT_EQ(interruption.signal(), SIGTERM);
  std::this_thread::sleep_for(std::chrono::milliseconds(100));
  std::raise(SIGTERM);  // the first request, which does not end the process
  EXPECT_EQ(interruption.reason(), "SIGTERM");
}

}  // namespace
}  // namespace cnn::bench
