#include "allreduce/host_ranks.h"

#include <array>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <iterator>
#include <stdexcept>
#include <string>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>
#include <utility>

#include "tests/support/files.h"

namespace cnn::allreduce {
namespace {

using namespace std::chrono_literals;
using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

// Returns a job name of this process, because concurrent tests each inspect all processes of the
// host.
std::string own_job() { return "cnn_test_of_host_ranks_" + std::to_string(::getpid()); }

// A process that looks as if a launcher had started it as this rank but the program had not begun.
class FakeRank {
 public:
  // program: a copy of sleep; the process and its main thread get its name.
  explicit FakeRank(int rank, const std::string& variable = "OMPI_COMM_WORLD_RANK",
                    const std::filesystem::path& program = "/bin/sleep") {
    const std::string name = program.filename().string(),
                      number = variable + "=" + std::to_string(rank),
                      name_space = "PMIX_NAMESPACE=" + own_job();
    const std::array<const char*, 3> environment{name_space.c_str(), number.c_str(), nullptr};
    process_ = ::fork();
    if (process_ == 0) {
      ::execle(program.c_str(), name.c_str(), "600", nullptr, environment.data());
      ::_exit(1);
    }
    // /proc shows the environment of this process until the new program runs. It shows none while
    // the kernel builds the new stack, although the process already has its new name.
    while (read("comm") != name + "\n" || read("environ").find(number) == std::string::npos) {
      if (::waitpid(process_, nullptr, WNOHANG) != 0) {
        throw std::runtime_error(program.string() + " does not run");
      }
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
    ::setenv("PMIX_NAMESPACE", own_job().c_str(), 1);
  }
  ~HostRanksTest() override {
    for (const auto& [name, value] : variables) {
      ::unsetenv(name);
    }
    ::unsetenv("PMIX_NAMESPACE");
  }

 protected:
  static void unset_variables_of_mpirun() {
    for (const char* const name :
         {"OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_LOCAL_SIZE", "OMPI_COMM_WORLD_SIZE"}) {
      ::unsetenv(name);
    }
  }

 private:
  static constexpr std::array<std::pair<const char*, const char*>, 3> variables{
      {{"OMPI_COMM_WORLD_RANK", "0"},
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

// The environment is that of an srun task on the second of three nodes.
TEST_F(HostRanksTest, TellOfTasksOfSrunWhoHasNotStartedAndWhoCannotBeSeen) {
  constexpr std::array<std::pair<const char*, const char*>, 4> slurm{
      {{"PMIX_RANK", "1"},
       {"SLURM_STEP_TASKS_PER_NODE", "1,4(x2)"},
       {"SLURM_STEP_NUM_TASKS", "9"},
       {"SLURM_NODEID", "1"}}};
  unset_variables_of_mpirun();
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

// A process's main thread has the name of its program; here that is the name of the MPI call.
TEST_F(HostRanksTest, TellWhoWaitsTooAndWhetherItsNumberIsLower) {
  const tests::TemporaryFolder folder;
  std::filesystem::create_symlink("/bin/sleep", folder.path() / "MPI_Test");
  ::setenv("OMPI_COMM_WORLD_RANK", "2", 1);
  {
    const FakeRank higher(3, "OMPI_COMM_WORLD_RANK", folder.path() / "MPI_Test");
    const HostRanks ranks = inspect_host_ranks("MPI_Test");
    EXPECT_THAT(ranks.text, HasSubstr("rank 3 waits too"));
    EXPECT_FALSE(ranks.lower_rank_waits);
  }
  const FakeRank lower(1, "OMPI_COMM_WORLD_RANK", folder.path() / "MPI_Test");
  const HostRanks ranks = inspect_host_ranks("MPI_Test");
  EXPECT_THAT(ranks.text, HasSubstr("rank 1 waits too"));
  EXPECT_TRUE(ranks.lower_rank_waits);
  EXPECT_THAT(inspect_host_ranks("MPI_Other").text, HasSubstr("rank 1 has not"));
  lower.stop();
  EXPECT_FALSE(inspect_host_ranks("MPI_Test").lower_rank_waits)
      << "the rank will never return from the call";
}

// "1,4(x2),2" means nodes with 1, 4, 4 and 2 tasks.
TEST_F(HostRanksTest, ReadHowManyTasksSrunHasStartedOnEachNode) {
  unset_variables_of_mpirun();
  ::setenv("SLURM_STEP_TASKS_PER_NODE", "1,4(x2),2", 1);
  for (const auto& [node, tasks] :
       {std::pair{"0", "1 more"}, {"1", "4 more"}, {"2", "4 more"}, {"3", "2 more"}}) {
    ::setenv("SLURM_NODEID", node, 1);
    EXPECT_THAT(inspect_host_ranks("MPI_Init").text, HasSubstr(tasks)) << node;
  }
  ::setenv("SLURM_NODEID", "4", 1);
  EXPECT_EQ(inspect_host_ranks("MPI_Init").text, "no rank of this host is missing");
  for (const char* broken : {"", "x", "(x2)", "4(x", "99999999999999999999", ",,"}) {
    ::setenv("SLURM_STEP_TASKS_PER_NODE", broken, 1);
    ::setenv("SLURM_NODEID", "1", 1);
    EXPECT_EQ(inspect_host_ranks("MPI_Init").text, "no rank of this host is missing") << broken;
  }
  ::unsetenv("SLURM_STEP_TASKS_PER_NODE");
  ::unsetenv("SLURM_NODEID");
}

TEST_F(HostRanksTest, SayNothingOfRanksWithoutALauncher) {
  unset_variables_of_mpirun();
  ::unsetenv("PMIX_NAMESPACE");
  EXPECT_EQ(inspect_host_ranks("MPI_Init").text, "no rank of this host is missing");
}

}  // namespace
}  // namespace cnn::allreduce
