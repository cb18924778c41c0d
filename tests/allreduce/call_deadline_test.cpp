#include "allreduce/call_deadline.h"

#include <chrono>
#include <future>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <string>

namespace cnn::allreduce {
namespace {

using namespace std::chrono_literals;
using testing::AllOf;
using testing::HasSubstr;

TEST(CallDeadline, NamesTheCallAndTheFlagOfItsTimeout) {
  std::promise<std::string> said;
  const CallDeadlineOptions options{
      .timeout = 50ms,
      .flag = "--comm_start_timeout_s=0.05",
      .expired = [&](const std::string& message) { said.set_value(message); }};
  const CallDeadline deadline("MPI_Init", options);
  EXPECT_THAT(said.get_future().get(),
              AllOf(HasSubstr("MPI_Init has waited"), HasSubstr("--comm_start_timeout_s=0.05")));
}

TEST(CallDeadline, IsSilentWhereTheCallReturnsOrThereIsNoDeadline) {
  bool said = false;
  const CallDeadlineOptions options{.timeout = 1h,
                                    .expired = [&](const std::string&) { said = true; }};
  { const CallDeadline deadline("MPI_Init", options); }
  EXPECT_FALSE(said);
  { const CallDeadline none("MPI_Init", {}); }
}

}  // namespace
}  // namespace cnn::allreduce
