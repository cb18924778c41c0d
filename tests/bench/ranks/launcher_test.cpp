#include "bench/ranks/launcher.h"

#include <algorithm>
#include <cstdlib>
#include <gtest/gtest.h>
#include <initializer_list>
#include <optional>
#include <string>
#include <unistd.h>
#include <utility>
#include <vector>

namespace cnn::bench {
namespace {

constexpr const char* rank_variable = "OMPI_COMM_WORLD_RANK";

// The environment of a process that mpirun has started, with this further variable.
class Launch {
 public:
  // mpirun makes each rank the leader of a process group; whoever started this test may have made
  // it a member of one whose leader has ended.
  Launch(const char* name, const char* value) : name_(name) {
    ::setpgid(0, 0);
    setenv(rank_variable, "1", 1);
    setenv(name_, value, 1);
  }
  ~Launch() {
    unsetenv(rank_variable);
    unsetenv(name_);
  }
  Launch(const Launch&) = delete;
  Launch& operator=(const Launch&) = delete;

 private:
  const char* name_;
};

// Environment variables for as long as it lives.
class SlurmVariables {
 public:
  SlurmVariables(std::initializer_list<std::pair<const char*, const char*>> values)
      : values_(values) {
    for (const auto& [name, value] : values_) {
      setenv(name, value, 1);
    }
  }
  ~SlurmVariables() {
    for (const auto& [name, value] : values_) {
      unsetenv(name);
    }
  }
  SlurmVariables(const SlurmVariables&) = delete;
  SlurmVariables& operator=(const SlurmVariables&) = delete;

 private:
  std::vector<std::pair<const char*, const char*>> values_;
};

// Returns whether the tasks are refused, and what this one says.
std::pair<bool, std::string> refusal_of_tasks() {
  Console console;
  testing::internal::CaptureStderr();
  const bool refused = refuse_unconnected_tasks(console);
  return {refused, testing::internal::GetCapturedStderr()};
}

TEST(LauncherInfo, KnowsRankAndNumberOfTasksOfSrun) {
  const SlurmVariables slurm(
      {{"PMIX_RANK", "3"}, {"PMIX_NAMESPACE", "slurm.pmix.7.0"}, {"SLURM_STEP_NUM_TASKS", "4"}});
  const std::optional<LauncherInfo> by = detect_launcher();
  ASSERT_TRUE(by);
  EXPECT_EQ(by->by, "srun");
  EXPECT_EQ(by->rank, 3);
  EXPECT_EQ(by->ranks, 4);
  EXPECT_FALSE(refusal_of_tasks().first);
}

// Its daemons are tasks of a step of Slurm, one for each node, and their ranks inherit that.
TEST(LauncherInfo, IgnoresTheTasksOfAnEnclosingSlurmStep) {
  const SlurmVariables inherited{{"SLURM_STEP_NUM_TASKS", "2"}, {"SLURM_PROCID", "1"}};
  {
    const SlurmVariables prun{{"PMIX_RANK", "5"}, {"PMIX_NAMESPACE", "prterun-n1-42@1"}};
    EXPECT_EQ(detect_launcher().value().ranks, std::nullopt);
    EXPECT_FALSE(refusal_of_tasks().first);
  }
  const SlurmVariables mpirun{{"OMPI_COMM_WORLD_RANK", "5"}, {"OMPI_COMM_WORLD_SIZE", "8"}};
  EXPECT_EQ(detect_launcher().value().by, "mpirun");
  EXPECT_EQ(detect_launcher().value().ranks, 8);
  EXPECT_FALSE(refusal_of_tasks().first);
}

TEST(UnconnectedTasks, AreRefusedInOneLineOfTheFirst) {
  const SlurmVariables tasks{{"SLURM_STEP_NUM_TASKS", "2"}};
  {
    const SlurmVariables first{{"SLURM_PROCID", "0"}};
    const auto [refused, said] = refusal_of_tasks();
    EXPECT_TRUE(refused);
    EXPECT_NE(said.find("srun has started 2 tasks"), std::string::npos) << said;
    EXPECT_NE(said.find("--mpi=pmix"), std::string::npos) << said;
    EXPECT_EQ(std::ranges::count(said, '\n'), 1) << said;
  }
  const SlurmVariables second{{"SLURM_PROCID", "1"}};
  EXPECT_EQ(refusal_of_tasks(), std::pair(true, std::string()));
}

TEST(UnconnectedTasks, AreNotAStepOfOneTaskNorABatchScript) {
  EXPECT_FALSE(refusal_of_tasks().first);
  const SlurmVariables batch{{"SLURM_NTASKS", "4"}, {"SLURM_PROCID", "0"}};
  EXPECT_FALSE(refusal_of_tasks().first);
  const SlurmVariables step{{"SLURM_STEP_NUM_TASKS", "1"}};
  EXPECT_FALSE(refusal_of_tasks().first);
}

TEST(KillDelay, IsUnknownWithoutALauncher) {
  EXPECT_FALSE(kill_delay().has_value());
  EXPECT_FALSE(announcing_process().has_value());
}

TEST(KillDelay, CountsFromTheAnnouncementToTheKill) {
  const Launch launch("OMPI_COMM_WORLD_SIZE", "2");
  EXPECT_EQ(kill_delay().value().seconds, 2);
}

TEST(KillDelay, IsWhatTheUserHasSet) {
  {
    const Launch launch("OMPI_MCA_odls_base_sigkill_timeout", "30");
    EXPECT_EQ(kill_delay().value().seconds, 60);
  }
  const Launch launch("PRTE_MCA_odls_base_sigkill_timeout", "10");
  EXPECT_EQ(kill_delay().value().seconds, 20);
}

TEST(KillDelay, HasNoAnnouncementWhereSigcontMeansSomethingElse) {
  const Launch launch("OMPI_MCA_orte_forward_job_control", "1");
  EXPECT_EQ(announcing_process(), std::nullopt);
  EXPECT_EQ(kill_delay().value().seconds, 1);
}

}  // namespace
}  // namespace cnn::bench
