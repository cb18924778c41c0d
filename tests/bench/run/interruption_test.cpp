#include "bench/run/interruption.h"

#include <csignal>
#include <gtest/gtest.h>
#include <optional>

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
  std::raise(SIGTERM);  // this process is still here
  std::signal(SIGTERM, SIG_DFL);
}

}  // namespace
}  // namespace cnn::bench
