// Tests which settings decide the number of threads that run kernels, and their placement.

#include <cstdlib>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>
#include <optional>
#include <sched.h>
#include <string>
#include <vector>

#include "tests/program/program.h"

namespace cnn::tests {
namespace {

// Removes an environment variable from started programs until the end of the scope.
class WithoutVariable {
 public:
  explicit WithoutVariable(const char* variable) : variable_(variable) {
    if (const char* const value = std::getenv(variable)) {
      value_ = value;
      unsetenv(variable);
    }
  }
  ~WithoutVariable() {
    if (value_) {
      setenv(variable_, value_->c_str(), 1);
    }
  }
  WithoutVariable(const WithoutVariable&) = delete;
  WithoutVariable& operator=(const WithoutVariable&) = delete;

 private:
  const char* variable_;
  std::optional<std::string> value_;
};

// Returns the number of threads that a run reports.
int threads_of_a_run(const std::vector<std::string>& more = {}) {
  const TemporaryFolder folder;
  std::vector<std::string> flags{"--device=cpu",         "--data_name=cifar10",
                                 "--model=trivial",      "--batch_size=2",
                                 "--num_batches=1",      "--num_warmup_batches=0",
                                 "--nomeasure_ceilings", "--result_json=" + (folder / "r.json")};
  flags.insert(flags.end(), more.begin(), more.end());
  const Finished run = run_program(flags);
  EXPECT_EQ(run.status, 0) << run.err;
  return nlohmann::json::parse(read_file(folder / "r.json"))["machine"]["cpu"]["cores_used"];
}

TEST(Threads, AreAsManyAsTheUserOfOpenMpAsksFor) {
  const Environment number("OMP_NUM_THREADS", "1");
  EXPECT_EQ(threads_of_a_run(), 1);
}

TEST(Threads, AreAsManyAsAskedForWithBlanksAroundTheNumber) {
  const Environment number("OMP_NUM_THREADS", " 3\t, 2");
  EXPECT_EQ(threads_of_a_run(), 3);
}

// A library that plans for more threads than OpenMP gives would wait for the others without end.
TEST(Threads, AreNoMoreThanTheLimitsOfOpenMp) {
  const Environment number("OMP_NUM_THREADS", "3");
  {
    const Environment limit("OMP_THREAD_LIMIT", "2");
    EXPECT_EQ(threads_of_a_run({"--model=resnet20"}), 2);
  }
  const Environment serial("OMP_MAX_ACTIVE_LEVELS", "0");
  EXPECT_EQ(threads_of_a_run({"--model=resnet20"}), 1);
}

TEST(Threads, MayBeMoreThanProcessors) {
  const std::string more = std::to_string(threads_of_a_run() + 1);
  const Environment number("OMP_NUM_THREADS", more.c_str());
  EXPECT_EQ(std::to_string(threads_of_a_run()), more);
}

TEST(Threads, AreAsManyAsTheFlagSaysWhateverOpenMpIsTold) {
  const int all = threads_of_a_run();
  const Environment number("OMP_NUM_THREADS", all == 1 ? "2" : "1");
  EXPECT_EQ(threads_of_a_run({"--num_intra_threads=" + std::to_string(all)}), all);
}

TEST(Threads, AreAsManyAsProcessorsWhereTheUserOnlyBindsThem) {
  const int all = threads_of_a_run();
  for (const char* const bind : {"true", "false", "close"}) {
    const Environment binding("OMP_PROC_BIND", bind);
    EXPECT_EQ(threads_of_a_run(), all) << bind;
  }
}

TEST(Threads, AreAsManyAsProcessorsThatTheUserBindsThemTo) {
  const std::string here = std::to_string(sched_getcpu());  // a processor that the process may use
  const Environment one("GOMP_CPU_AFFINITY", here.c_str());
  EXPECT_EQ(threads_of_a_run(), 1);
}

// OMP_DISPLAY_ENV lets the library print what it has read.
TEST(Threads, SpinForTensOfMicrosecondsUnlessTheUserSaysHowTheyWait) {
  const Environment display("OMP_DISPLAY_ENV", "verbose");
  const WithoutVariable no_policy("OMP_WAIT_POLICY"), no_count("GOMP_SPINCOUNT");
  const std::vector<std::string> flags{"--device=cpu", "--list_models"};
  const std::string limited = "GOMP_SPINCOUNT = '2000'";
  const Finished by_default = run_program(flags);
  EXPECT_EQ(by_default.status, 0);
  EXPECT_NE(by_default.err.find(limited), std::string::npos) << by_default.err;
  const Environment policy("OMP_WAIT_POLICY", "active");
  EXPECT_EQ(run_program(flags).err.find(limited), std::string::npos);
}

}  // namespace
}  // namespace cnn::tests
