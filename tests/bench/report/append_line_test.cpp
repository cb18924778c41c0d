#include "bench/report/append_line.h"

#include <csignal>
#include <gtest/gtest.h>
#include <string>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>
#include <vector>

#include "tests/support/error_of.h"
#include "tests/support/files.h"

namespace cnn::bench {
namespace {

TEST(AppendLine, KeepsLinesOfManyProcessesWhole) {
  const tests::TemporaryFolder folder;
  const std::string path = folder / "history";
  constexpr int processes = 8, lines = 50;
  const std::string line = std::string(3000, 'x') + "\n";
  std::vector<pid_t> children;
  for (int i = 0; i < processes; ++i) {
    children.push_back(fork());
    if (children.back() == 0) {
      for (int n = 0; n < lines; ++n) {
        append_line("--history", path, line);
      }
      _exit(0);
    }
  }
  for (const pid_t child : children) {
    int status = -1;
    waitpid(child, &status, 0);
    EXPECT_EQ(status, 0);
  }
  std::string all;
  for (int i = 0; i < processes * lines; ++i) {
    all += line;
  }
  EXPECT_TRUE(tests::read_file(path) == all);
}

TEST(AppendLine, StartsANewLineBehindOneThatWasCutOff) {
  const tests::TemporaryFolder folder;
  folder.write("history", "{\"program\": ");
  append_line("--history", folder / "history", "{}\n");
  append_line("--history", folder / "history", "[]\n");
  EXPECT_EQ(tests::read_file(folder / "history"), "{\"program\": \n{}\n[]\n");
}

TEST(AppendLine, NamesFlagAndPathThatCannotBeWritten) {
  const tests::TemporaryFolder folder;
  EXPECT_EQ(tests::error_of([&] { append_line("--history", folder / "none/file", "{}\n"); }),
            "--history=" + (folder / "none/file") + ": cannot write it: No such file or directory");
}

// A limit on the file size stands for a full disk: the system writes a part of the line.
TEST(AppendLine, AddsNothingOfALineThatDoesNotFit) {
  const tests::TemporaryFolder folder;
  const std::string path = folder.write("history", "{}\n");
  rlimit before{};
  getrlimit(RLIMIT_FSIZE, &before);
  const auto handler = std::signal(SIGXFSZ, SIG_IGN);
  rlimit limit = before;
  limit.rlim_cur = 100;
  setrlimit(RLIMIT_FSIZE, &limit);
  const std::string problem =
      tests::error_of([&] { append_line("--history", path, std::string(1000, 'x') + "\n"); });
  setrlimit(RLIMIT_FSIZE, &before);
  std::signal(SIGXFSZ, handler);
  EXPECT_NE(problem.find("--history=" + path + ": cannot write it"), std::string::npos) << problem;
  EXPECT_EQ(tests::read_file(path), "{}\n");
}

TEST(AppendLine, WritesToADeviceToo) {
  append_line("--history", "/dev/null", "{}\n");
  EXPECT_EQ(tests::error_of([] { append_line("--history", "/dev/full", "{}\n"); }),
            "--history=/dev/full: cannot write it: No space left on device");
}

}  // namespace
}  // namespace cnn::bench
