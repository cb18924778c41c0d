#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

namespace cnn::tests {
namespace {

// Returns the peak resident memory in KiB while the program prints its help.
long memory_of_help() {
  const pid_t child = ::fork();
  if (child == 0) {
    const int nowhere = ::open("/dev/null", O_WRONLY | O_CLOEXEC);
    ::dup2(nowhere, STDOUT_FILENO);
    ::execl(CNN_PROGRAM, CNN_PROGRAM, "--help", nullptr);
    ::_exit(127);
  }
  int status = 0;
  rusage used{};
  EXPECT_EQ(::wait4(child, &status, 0, &used), child);
  // absl's flags exit with 1 after the help.
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 1);
  return used.ru_maxrss;
}

// Only CUDA's libraries would already take 200 MiB.
TEST(Start, MapsNoLibraryThatHelpDoesNotNeed) { EXPECT_LT(memory_of_help(), 30 * 1024); }

}  // namespace
}  // namespace cnn::tests
