#include "bench/machine/openmp_spin.h"

#include <gtest/gtest.h>
#include <string_view>

namespace cnn::bench {
namespace {

TEST(OpenMpSpin, IsLimitedUnlessTheUserSaysHowThreadsWait) {
  EXPECT_TRUE(leaves_spinning_open([](const char* /*name*/) -> const char* { return nullptr; }));
  EXPECT_FALSE(leaves_spinning_open([](const char* name) -> const char* {
    return name == std::string_view("OMP_WAIT_POLICY") ? "active" : nullptr;
  }));
  EXPECT_FALSE(leaves_spinning_open([](const char* name) -> const char* {
    return name == std::string_view("GOMP_SPINCOUNT") ? "5" : nullptr;
  }));
}

TEST(OpenMpSpin, IsNotLimitedWhereTheUserBindsThreads) {
  EXPECT_FALSE(leaves_spinning_open([](const char* name) -> const char* {
    return name == std::string_view("OMP_PROC_BIND") ? "true" : nullptr;
  }));
}

TEST(OpenMpSpin, LeavesTheProcessAsItIsIfTheProgramCannotBeStartedAgain) {
  char name[] = "program";
  char* words[] = {name, nullptr};
  limit_openmp_spinning("", words);
  limit_openmp_spinning("relative", words);
  limit_openmp_spinning("/no/such/program", words);
  SUCCEED() << "the process goes on";
}

}  // namespace
}  // namespace cnn::bench
