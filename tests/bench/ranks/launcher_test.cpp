#include "bench/ranks/launcher.h"

#include <cstdlib>
#include <gtest/gtest.h>
#include <optional>
#include <unistd.h>

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
