#include "allreduce/stall.h"

#include <gtest/gtest.h>
#include <string>
#include <vector>

#include "tests/allreduce/ranks.h"

namespace cnn::allreduce {
namespace {

using std::chrono::seconds;

// Returns the warnings of a rank whose clock advances by `between_looks` at each poll.
std::vector<std::string> said_in(int waits, seconds between_looks, bool comes_in_between) {
  std::vector<std::string> said;
  std::chrono::steady_clock::time_point now;
  const auto errors = tests::as_threads(1, {.segment_bytes = 4096}, [&](Transport& transport) {
    StallWarningTransport warning(transport,
                                  {.after = seconds(60),
                                   .say = [&](const std::string& what) { said.push_back(what); },
                                   .now = [&] { return now += between_looks; }});
    warning.begin(4);
    for (int i = 0; i < waits; ++i) {
      warning.idle(0);
      if (comes_in_between && i % 1050 == 0) {
        warning.busy();
      }
    }
  });
  EXPECT_EQ(errors[0], "");
  return said;
}

TEST(StallWarning, RepeatsAfterEachInterval) {
  const std::vector<std::string> said = said_in(1130, seconds(1), false);
  EXPECT_EQ(said,
            (std::vector<std::string>{"rank 0 has waited for rank 0 for 60.0 s, in bucket 4",
                                      "rank 0 has waited for rank 0 for 120.0 s, in bucket 4"}));
}

TEST(StallWarning, CountsOneWaitOnly) { EXPECT_TRUE(said_in(5000, seconds(1), true).empty()); }

TEST(StallWarning, TellsTheProgressOfTheOtherRank) {
  std::string said;
  std::chrono::steady_clock::time_point now;
  const auto errors = tests::as_threads(2, {.segment_bytes = 4096}, [&](Transport& transport) {
    const int both[] = {0, 1};
    if (transport.rank() == 1) {
      *transport.progress() = progress_at(Phase::input, 11);
      transport.arrive(both, 0);
      return;
    }
    transport.arrive(both, 0);
    while (!transport.arrived(both, 0)) {
      transport.idle(1);
    }
    StallWarningTransport warning(transport, {.after = seconds(60),
                                              .say = [&](const std::string& what) { said = what; },
                                              .now = [&] { return now += seconds(1); }});
    for (int i = 0; i < 1070; ++i) {
      warning.idle(0);
    }
    EXPECT_EQ(said, "rank 0 has waited for rank 0 for 60.0 s, in bucket 0");
    EXPECT_EQ(progress_text(warning.progress_of(1)), "waits for the examples of step 12");
  });
  EXPECT_EQ(errors, std::vector<std::string>(2));
}

// The time in which the process was stopped does not count as waiting.
TEST(StallWarning, IgnoresTimeInWhichTheProcessWasStopped) {
  EXPECT_TRUE(said_in(1059, seconds(100), false).empty());
}

}  // namespace
}  // namespace cnn::allreduce
