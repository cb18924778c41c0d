#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

namespace cnn::tests {
namespace {

// Resident KiB at most while the program prints its help.
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
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 1);  // as absl's flags do
  return used.ru_maxrss;
}

// The libraries of CUDA alone would take 200 MiB.
TEST(Start, MapsNoLibraryThatHelpDoesNotNeed) { EXPECT_LT(memory_of_help(), 30 * 1024); }

}  // namespace
}  // namespace cnn::tests
