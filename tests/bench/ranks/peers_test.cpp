#include "bench/ranks/peers.h"

#include <gtest/gtest.h>
#include <string>

#include "bench/flags/config.h"
#include "tests/support/error_of.h"

namespace cnn::bench {
namespace {

std::string refused_mode(VariableUpdate update, int processes, bool by_launcher, int num_gpus = 1) {
  Config config;
  config.device = DeviceKind::cpu;
  config.variable_update = update;
  config.num_gpus = num_gpus;
  return tests::error_of([&] { check_update_mode(config, processes, by_launcher); });
}

TEST(UpdateMode, NeedsALauncherForSeveralProcesses) {
  EXPECT_EQ(refused_mode(VariableUpdate::ddl, 1, false),
            "Could not initialize DDL. Run this program using mpirun.");
  for (const VariableUpdate update :
       {VariableUpdate::distributed_replicated, VariableUpdate::distributed_all_reduce,
        VariableUpdate::collective_all_reduce}) {
    EXPECT_NE(refused_mode(update, 1, false).find("mpirun -np N cnn_benchmarks"),
              std::string::npos);
    EXPECT_EQ(refused_mode(update, 1, true), "");
    EXPECT_EQ(refused_mode(update, 3, true), "");
  }
  EXPECT_EQ(refused_mode(VariableUpdate::collective_all_reduce, 1, false, 2), "");
  EXPECT_EQ(refused_mode(VariableUpdate::distributed_all_reduce, 1, false, 2), "");
  EXPECT_EQ(refused_mode(VariableUpdate::horovod, 1, false), "");  // a single rank needs none
}

TEST(UpdateMode, SuggestsAnotherModeInsteadOfSilentCopies) {
  EXPECT_EQ(refused_mode(VariableUpdate::parameter_server, 2, true),
            "2 processes with --variable_update=parameter_server would train 2 models that know "
            "nothing of one another: use --variable_update=horovod, or independent if that is what "
            "you want");
  EXPECT_EQ(refused_mode(VariableUpdate::independent, 2, true), "");
  EXPECT_EQ(refused_mode(VariableUpdate::replicated, 3, true, 2), "");
}

TEST(UpdateMode, NamesTheFlagThatPredictsRanksInASimulation) {
  Config config;
  config.gpu.simulate = "h200";
  EXPECT_EQ(tests::error_of([&] { check_update_mode(config, 4, true); }),
            "--simulate runs nothing, so that one process is enough: start it without mpirun, with "
            "--simulate_ranks=4 for what 4 ranks would do");
}

}  // namespace
}  // namespace cnn::bench
