#include "bench/report/console.h"

#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <fcntl.h>
#include <functional>
#include <gtest/gtest.h>
#include <poll.h>
#include <string>
#include <sys/wait.h>
#include <unistd.h>
#include <vector>

#include "bench/report/write_all.h"

namespace cnn::bench {
namespace {

struct ConsoleOutput {
  std::string out, err;
};

ConsoleOutput said_by(Console& console, const std::function<void(Console&)>& speak) {
  testing::internal::CaptureStdout();
  testing::internal::CaptureStderr();
  speak(console);
  return {.out = testing::internal::GetCapturedStdout(),
          .err = testing::internal::GetCapturedStderr()};
}

void say_all(Console& console) {
  console.print("for all");
  console.print(std::vector<std::string>{"two", "lines"});
  console.print_own("of one");
  console.note("note for all");
  console.note_own("note of one");
}

// Runs `work` with `file` as a standard stream.
void with_stream(int stream, int file, const std::function<void()>& work) {
  const int kept = dup(stream);
  dup2(file, stream);
  work();
  dup2(kept, stream);
  close(kept);
}

TEST(Console, HasOnlyPrintedLinesOnStdout) {
  Console console;
  const ConsoleOutput said = said_by(console, say_all);
  EXPECT_EQ(said.out, "for all\ntwo\nlines\nof one\n");
  EXPECT_EQ(said.err, "note for all\nnote of one\n");
}

TEST(Console, SpeaksForAllProcessesInTheFirst) {
  Console console;
  console.become_rank(0);
  EXPECT_EQ(said_by(console, say_all).err, "note for all\nnote of one\n");
}

TEST(Console, PrintsOnlyItsOwnLinesInALaterProcess) {
  Console console;
  console.become_rank(3);
  const ConsoleOutput said = said_by(console, say_all);
  EXPECT_EQ(said.out, "of one\n");
  EXPECT_EQ(said.err, "rank 3: note of one\n");
}

TEST(Console, ShowsNoProgressWhereStderrIsNoTerminal) {
  testing::internal::CaptureStderr();
  Console console;
  console.progress("step 1 of 9");
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "");
}

TEST(Console, ClearsTheProgressOfATerminalBeforeAnythingElseIsSaid) {
  const int terminal = posix_openpt(O_RDWR | O_NOCTTY | O_NONBLOCK);
  ASSERT_GE(terminal, 0);
  ASSERT_EQ(grantpt(terminal), 0);
  ASSERT_EQ(unlockpt(terminal), 0);
  const int end = open(ptsname(terminal), O_RDWR | O_NOCTTY);
  ASSERT_GE(end, 0);
  testing::internal::CaptureStdout();
  with_stream(STDERR_FILENO, end, [] {
    Console console;
    console.progress("a");
    console.progress("b");
    console.print("line");
    console.print("next");
    Console other;
    other.become_rank(1);
    other.progress("never seen");
  });
  EXPECT_EQ(testing::internal::GetCapturedStdout(), "line\nnext\n");
  // The system delivers a terminal's text piece by piece.
  const std::string expected = "\r\x1b[Ka\r\x1b[Kb\r\x1b[K";
  std::string shown;
  constexpr int a_minute = 60'000;
  pollfd ready{.fd = terminal, .events = POLLIN, .revents = 0};
  while (shown.size() < expected.size() && poll(&ready, 1, a_minute) == 1) {
    char next = 0;
    ASSERT_EQ(::read(terminal, &next, 1), 1);
    shown += next;
  }
  EXPECT_EQ(shown, expected);
  close(end);
  close(terminal);
}

TEST(Console, RemembersWhyTheFirstLineWasLost) {
  Console console;
  EXPECT_FALSE(console.lost());
  const int full = open("/dev/full", O_WRONLY);
  with_stream(STDOUT_FILENO, full, [&] { console.print("a"); });
  close(full);
  const std::string why = "stdout: a line could not be written: No space left on device";
  EXPECT_EQ(console.lost(), why);
  const int reads_only = open("/dev/null", O_RDONLY);
  with_stream(STDOUT_FILENO, reads_only, [&] { console.print("b"); });
  close(reads_only);
  EXPECT_EQ(console.lost(), why);
}

TEST(Console, WritesNothingBehindALineThatWasLost) {
  Console console;
  const int full = open("/dev/full", O_WRONLY);
  with_stream(STDOUT_FILENO, full, [&] { console.print("a"); });
  close(full);
  EXPECT_EQ(said_by(console, [](Console& c) { c.print("b"); }).out, "");
}

// Returns the exit status of a child process in which `work` returns whether all checks passed.
int status_of_process(const std::function<bool()>& work) {
  const pid_t child = fork();
  if (child == 0) {
    _exit(work() ? 0 : 1);
  }
  int status = -1;
  waitpid(child, &status, 0);
  return status;
}

TEST(StandardStreams, KeepTheirNumbersFromFilesIfTheyAreClosed) {
  EXPECT_EQ(status_of_process([] {
              close(STDIN_FILENO);
              close(STDOUT_FILENO);
              close(STDERR_FILENO);
              guard_standard_streams();
              const bool is_above = open("/dev/null", O_WRONLY) > STDERR_FILENO;
              return is_above && write_all(STDOUT_FILENO, "x") == EBADF;
            }),
            0);
}

TEST(StandardStreams, DoNotEndTheProcessIfNobodyReadsThem) {
  EXPECT_EQ(status_of_process([] {
              std::signal(SIGPIPE, SIG_DFL);
              guard_standard_streams();
              int ends[2];
              if (pipe(ends) != 0) {
                return false;
              }
              close(ends[0]);
              return write_all(ends[1], "x") == EPIPE;
            }),
            0);
}

}  // namespace
}  // namespace cnn::bench
