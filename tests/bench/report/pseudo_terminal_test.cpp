#include "bench/report/pseudo_terminal.h"

#include <cstdlib>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <string>
#include <termios.h>
#include <unistd.h>

namespace cnn::bench {
namespace {

// Fixture with a pseudo terminal: one end is the launcher's, the other is a rank's stdout.
class PseudoTerminal : public testing::Test {
 protected:
  void SetUp() override {
    launcher_ = posix_openpt(O_RDWR | O_NOCTTY);
    ASSERT_GE(launcher_, 0);
    ASSERT_EQ(grantpt(launcher_), 0);
    ASSERT_EQ(unlockpt(launcher_), 0);
    rank_ = open(ptsname(launcher_), O_RDWR | O_NOCTTY);  // NOLINT(concurrency-mt-unsafe)
    ASSERT_GE(rank_, 0);
  }
  void TearDown() override {
    close(rank_);
    close(launcher_);
  }
  int rank() const { return rank_; }

  void convert_line_ends(bool convert) const {
    termios settings = now();
    settings.c_oflag |= OPOST | ONLCR;
    if (!convert) {
      settings.c_oflag &= ~static_cast<tcflag_t>(ONLCR);
    }
    ASSERT_EQ(tcsetattr(rank_, TCSANOW, &settings), 0);
  }
  termios now() const {
    termios settings{};
    EXPECT_EQ(tcgetattr(rank_, &settings), 0);
    return settings;
  }
  std::string read_by_launcher() const {
    std::string text(100, ' ');
    const ssize_t bytes = read(launcher_, text.data(), text.size());
    text.resize(bytes > 0 ? static_cast<std::size_t>(bytes) : 0);
    return text;
  }

 private:
  int launcher_ = -1, rank_ = -1;
};

TEST_F(PseudoTerminal, PassesLinesOfARankOnToItsLauncherAsTheyAreWritten) {
  convert_line_ends(false);
  keep_lines_whole(rank());
  EXPECT_EQ(now().c_oflag & OPOST, 0U);
  const std::string line = "1\timages/sec: 1.0 +/- 0.0 (jitter = 0.0)\t2.303\n";
  ASSERT_EQ(write(rank(), line.data(), line.size()), static_cast<ssize_t>(line.size()));
  EXPECT_EQ(read_by_launcher(), line);
}

TEST_F(PseudoTerminal, StaysAsAUserHasSetIt) {
  convert_line_ends(true);
  const tcflag_t before = now().c_oflag;
  keep_lines_whole(rank());
  EXPECT_EQ(now().c_oflag, before);
}

TEST(KeepLinesWhole, LeavesWhatIsNoTerminalAlone) {
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  keep_lines_whole(ends[1]);
  EXPECT_EQ(write(ends[1], "a\n", 2), 2);
  close(ends[0]);
  close(ends[1]);
}

}  // namespace
}  // namespace cnn::bench
