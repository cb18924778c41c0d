#include "runtime/resource_limits.h"

#include <cerrno>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <new>
#include <stdexcept>
#include <sys/resource.h>

namespace cnn {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

// Sets a soft limit so high that no test reaches it, until the end of the scope.
class Limited {
 public:
  explicit Limited(__rlimit_resource resource) : resource_(resource) {
    getrlimit(resource_, &before_);
    rlimit limited = before_;
    limited.rlim_cur = rlim_t{1} << 44U;
    setrlimit(resource_, &limited);
  }
  ~Limited() { setrlimit(resource_, &before_); }
  Limited(const Limited&) = delete;
  Limited& operator=(const Limited&) = delete;

 private:
  __rlimit_resource resource_;
  rlimit before_{};
};

TEST(FailureText, NamesTheLimitThatCausedMissingMemory) {
  {
    const Limited limited(RLIMIT_AS);
    EXPECT_THAT(failure_text(std::bad_alloc()),
                AllOf(HasSubstr("out of memory"), HasSubstr("17179869184 KiB"),
                      HasSubstr("ulimit -v"), Not(HasSubstr("bad_alloc"))));
  }
  const Limited limited(RLIMIT_DATA);
  EXPECT_THAT(failure_text(std::bad_alloc()), HasSubstr("ulimit -d"));
}

TEST(FailureText, RepeatsTheMessageOfOtherErrors) {
  EXPECT_EQ(failure_text(std::runtime_error("no such file")), "no such file");
}

TEST(WriteProblemText, NamesTheLimitOfTheSizeOfFiles) {
  EXPECT_EQ(write_problem_text(ENOSPC), "No space left on device");
  const Limited limited(RLIMIT_FSIZE);
  EXPECT_THAT(
      write_problem_text(EFBIG),
      AllOf(HasSubstr("File too large"), HasSubstr("17179869184 KiB"), HasSubstr("ulimit -f")));
}

}  // namespace
}  // namespace cnn
