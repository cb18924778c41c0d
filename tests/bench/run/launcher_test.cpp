#include "bench/run/launcher.h"

#include <cstdlib>
#include <gtest/gtest.h>
#include <utility>
#include <vector>

namespace cnn::bench {
namespace {

// The environment of a process that mpirun has started with these further variables.
class Launch {
 public:
  explicit Launch(std::vector<std::pair<const char*, const char*>> variables)
      : variables_(std::move(variables)) {
    variables_.emplace_back("OMPI_COMM_WORLD_RANK", "1");
    for (const auto& [name, value] : variables_) {
      setenv(name, value, 1);
    }
  }
  ~Launch() {
    for (const auto& [name, value] : variables_) {
      unsetenv(name);
    }
  }
  Launch(const Launch&) = delete;
  Launch& operator=(const Launch&) = delete;

 private:
  std::vector<std::pair<const char*, const char*>> variables_;
};

TEST(KillDelay, IsUnknownWithoutALauncher) {
  EXPECT_FALSE(kill_delay().has_value());
  EXPECT_FALSE(announcing_process().has_value());
}

TEST(KillDelay, CountsFromTheAnnouncementToTheKill) {
  const Launch launch({});
  EXPECT_EQ(kill_delay().value().seconds, 2);
}

TEST(KillDelay, IsWhatTheUserHasSet) {
  {
    const Launch launch({{"OMPI_MCA_odls_base_sigkill_timeout", "30"}});
    EXPECT_EQ(kill_delay().value().seconds, 60);
  }
  const Launch launch({{"PRTE_MCA_odls_base_sigkill_timeout", "10"}});
  EXPECT_EQ(kill_delay().value().seconds, 20);
}

TEST(KillDelay, HasNoAnnouncementWhereSigcontMeansSomethingElse) {
  const Launch launch({{"OMPI_MCA_orte_forward_job_control", "1"}});
  EXPECT_EQ(announcing_process(), std::nullopt);
  EXPECT_EQ(kill_delay().value().seconds, 1);
}

}  // namespace
}  // namespace cnn::bench
