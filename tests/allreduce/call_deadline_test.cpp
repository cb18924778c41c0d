#include "allreduce/call_deadline.h"

#include <array>
#include <csignal>
#include <cstdlib>
#include <fstream>
#include <future>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <iterator>
#include <string>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>
#include <utility>

#include "allreduce/host_ranks.h"

namespace cnn::allreduce {
namespace {

using namespace std::chrono_literals;
using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

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

// A process that looks as if a launcher had started it as that rank; it has not come to the
// program.
class FakeRank {
 public:
  explicit FakeRank(int rank, const std::string& variable = "OMPI_COMM_WORLD_RANK") {
    const std::string number = variable + "=" + std::to_string(rank);
    const std::array<const char*, 3> environment{"PMIX_NAMESPACE=cnn_test_of_host_ranks",
                                                 number.c_str(), nullptr};
    process_ = ::fork();
    if (process_ == 0) {
      ::execle("/bin/sleep", "sleep", "600", nullptr, environment.data());
      ::_exit(1);
    }
    // Before the new program runs, /proc shows the environment of this process, and while the
    // kernel builds the new program's stack, which is after the process has its new name, none.
    while (read("comm") != "sleep\n" || read("environ").find(number) == std::string::npos) {
      std::this_thread::sleep_for(1ms);
    }
  }
  ~FakeRank() {
    ::kill(process_, SIGKILL);
    ::waitpid(process_, nullptr, 0);
  }
  FakeRank(const FakeRank&) = delete;
  FakeRank& operator=(const FakeRank&) = delete;

  void stop() const {
    ::kill(process_, SIGSTOP);
    ::waitpid(process_, nullptr, WUNTRACED);
  }
  std::string text() const { return "process " + std::to_string(process_); }

 private:
  std::string read(const std::string& name) const {
    std::ifstream file("/proc/" + std::to_string(process_) + "/" + name);
    return {std::istreambuf_iterator<char>(file), {}};
  }
  pid_t process_ = 0;
};

class HostRanksTest : public testing::Test {
 public:
  HostRanksTest() {
    for (const auto& [name, value] : variables) {
      ::setenv(name, value, 1);
    }
  }
  ~HostRanksTest() override {
    for (const auto& [name, value] : variables) {
      ::unsetenv(name);
    }
  }

 private:
  static constexpr std::array<std::pair<const char*, const char*>, 4> variables{
      {{"PMIX_NAMESPACE", "cnn_test_of_host_ranks"},
       {"OMPI_COMM_WORLD_RANK", "0"},
       {"OMPI_COMM_WORLD_LOCAL_SIZE", "4"},
       {"OMPI_COMM_WORLD_SIZE", "6"}}};
};

TEST_F(HostRanksTest, TellWhoIsStoppedWhoHasNotStartedAndWhoCannotBeSeen) {
  const FakeRank second(2), third(3);
  third.stop();
  const HostRanks ranks = inspect_host_ranks("MPI_Init");
  EXPECT_THAT(ranks.text,
              AllOf(HasSubstr("rank 2 has not started the program (" + second.text() + ")"),
                    HasSubstr("rank 3 is stopped (" + third.text() + ")"),
                    HasSubstr("2 more of this host"), HasSubstr("other hosts")));
  EXPECT_FALSE(ranks.lower_rank_waits);
}

TEST_F(HostRanksTest, DoNotTellOfAnotherJob) {
  const FakeRank second(2);
  ::setenv("PMIX_NAMESPACE", "another", 1);
  EXPECT_THAT(inspect_host_ranks("MPI_Init").text, Not(HasSubstr(second.text())));
}

// The environment of a task of srun, on the second of three nodes.
TEST_F(HostRanksTest, TellOfTasksOfSrunWhoHasNotStartedAndWhoCannotBeSeen) {
  constexpr std::array<std::pair<const char*, const char*>, 4> slurm{
      {{"PMIX_RANK", "1"},
       {"SLURM_STEP_TASKS_PER_NODE", "1,4(x2)"},
       {"SLURM_STEP_NUM_TASKS", "9"},
       {"SLURM_NODEID", "1"}}};
  for (const char* const name :
       {"OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_LOCAL_SIZE", "OMPI_COMM_WORLD_SIZE"}) {
    ::unsetenv(name);
  }
  for (const auto& [name, value] : slurm) {
    ::setenv(name, value, 1);
  }
  const FakeRank third(3, "PMIX_RANK");
  EXPECT_THAT(inspect_host_ranks("MPI_Init").text,
              AllOf(HasSubstr("rank 3 has not started the program (" + third.text() + ")"),
                    HasSubstr("3 more of this host"), HasSubstr("other hosts")));
  for (const auto& [name, value] : slurm) {
    ::unsetenv(name);
  }
}

}  // namespace
}  // namespace cnn::allreduce
