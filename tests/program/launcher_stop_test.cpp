#include <csignal>
#include <filesystem>
#include <fstream>
#include <gtest/gtest.h>
#include <sstream>
#include <unistd.h>

#include "tests/program/ranks.h"

namespace cnn::tests {
namespace {

// Returns mpirun's process id, which is the parent of the rank's process group leader.
pid_t launcher_of(pid_t rank) {
  const pid_t leader = ::getpgid(rank);
  const std::string stat = read_file("/proc/" + std::to_string(leader) + "/stat");
  std::istringstream rest(stat.substr(stat.rfind(')') + 1));
  char state = 0;
  pid_t parent = 0;
  rest >> state >> parent;
  return parent;
}

bool has_printed(const Finished& so_far, const std::string& text) {
  return so_far.out.find(text) != std::string::npos;
}

class LauncherStop : public testing::Test {
 protected:
  void SetUp() override {
    if (const std::string why = why_no_ranks(); !why.empty()) {
      GTEST_SKIP() << why;
    }
  }
  static std::vector<std::string> flags(const TemporaryFolder& folder,
                                        const std::vector<std::string>& more) {
    std::vector<std::string> all{"--variable_update=horovod",
                                 "--data_name=cifar10",
                                 "--model=alexnet",
                                 "--batch_size=4",
                                 "--num_warmup_batches=0",
                                 "--display_every=1",
                                 "--num_batches=1000000",
                                 "--nomeasure_ceilings",
                                 "--train_dir=" + (folder / "t")};
    all.insert(all.end(), more.begin(), more.end());
    return all;
  }
};

// mpirun kills ranks two seconds after Ctrl-C, and the current step takes ten minutes. This mpirun
// ignores the PRTE variable, but the program reads it and considers every step too long.
TEST_F(LauncherStop, SavesTheStateAfterTheLastFinishedStepOfALongOne) {
  const TemporaryFolder folder;
  const Environment impatient("PRTE_MCA_odls_base_sigkill_timeout", "0");
  const Finished run = run_ranks(
      2, flags(folder, {"--comm_fault=rank=1,step=6,what=delay:600000ms"}),
      [](const Finished& so_far) { return has_printed(so_far, "\n5\timages/sec"); },
      [] { ::kill(launcher_of(process_of_rank(0)), SIGINT); });
  int saved = 0;  // a slow machine does not copy every step
  for (int step = 2; step <= 5; ++step) {
    saved +=
        std::filesystem::exists(folder / ("t/model.ckpt-" + std::to_string(step) + ".safetensors"))
            ? 1
            : 0;
  }
  EXPECT_GE(saved, 1) << run.err;
  EXPECT_TRUE(std::filesystem::exists(folder / "t/checkpoint")) << run.err;
  EXPECT_NE(run.err.find("odls_base_sigkill_timeout"), std::string::npos) << run.err;
}

TEST_F(LauncherStop, EndsAfterTheStepAtTheAnnouncementOfMpirun) {
  const TemporaryFolder folder;
  const Environment patient("OMPI_MCA_odls_base_sigkill_timeout", "5");
  const Finished run = run_ranks(
      2, flags(folder, {"--result_json=" + (folder / "r.json")}),
      [](const Finished& so_far) { return has_printed(so_far, "\n3\timages/sec"); },
      [] { ::kill(launcher_of(process_of_rank(0)), SIGINT); });
  EXPECT_TRUE(std::filesystem::exists(folder / "t/checkpoint")) << run.err;
  EXPECT_NE(read_file(folder / "r.json").find("\"interrupted_by\": \"SIGTERM\""),
            std::string::npos);
  EXPECT_EQ(run.err.find("odls_base_sigkill_timeout"), std::string::npos) << run.err;
}

}  // namespace
}  // namespace cnn::tests
