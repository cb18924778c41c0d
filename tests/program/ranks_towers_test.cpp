#include <algorithm>
#include <csignal>
#include <map>
#include <string>
#include <vector>

#include "tests/program/rank_training.h"

namespace cnn::tests {
namespace {

using Flags = std::vector<std::string>;

class TowersOfProcesses : public SeveralProcesses {};

// Every run has one thread, because the order of sums depends on the number of threads.
RankTraining train_towers(int processes, int towers, const Flags& more) {
  Flags flags{"--num_gpus=" + std::to_string(towers), "--num_intra_threads=1"};
  flags.insert(flags.end(), more.begin(), more.end());
  return train_as(processes, flags);
}

void expect_the_originals_lines(const RankTraining& mixed) {
  const Flags lines = mixed.run.lines();
  for (const char* const once :
       {"Batch size:  8 global", "             2 per device",
        "Devices:     ['/job:worker/replica:0/task:0/cpu:0', '/job:worker/replica:0/task:0/cpu:1', "
        "'/job:worker/replica:0/task:1/cpu:0', '/job:worker/replica:0/task:1/cpu:1']"}) {
    EXPECT_EQ(std::ranges::count(lines, once), 1) << once << "\n" << mixed.run.out;
  }
  EXPECT_EQ(mixed.run.step_lines().size(), 3U) << mixed.run.out;
  EXPECT_EQ(times_in(mixed.run.err,
                     "4 ranks, 2 on threads of each of 2 processes that share memory: gradients "
                     "and weight decay are summed"),
            1U)
      << mixed.run.err;
}

TEST_F(TowersOfProcesses, HaveTheBitsOfTowersAndOfProcesses) {
  const RankTraining mixed = train_towers(2, 2, {"--variable_update=replicated"});
  EXPECT_EQ(mixed.hashes().size(), 1U);
  EXPECT_EQ(mixed.result.at("ranks").size(), 4U);
  expect_the_originals_lines(mixed);
  const RankTraining towers = train_towers(1, 4, {"--variable_update=replicated"});
  EXPECT_EQ(mixed.weights, towers.weights) << mixed.run.err;
  EXPECT_EQ(mixed.hashes(), towers.hashes());
  EXPECT_EQ(mixed.result.at("steps")[0].at("loss"), towers.result.at("steps")[0].at("loss"));
  const RankTraining processes = train_towers(4, 1, {"--variable_update=distributed_all_reduce"});
  EXPECT_EQ(mixed.weights, processes.weights) << processes.run.err;
}

TEST_F(TowersOfProcesses, HaveTheBitsOfTowersWithMessages) {
  const Flags order{"--variable_update=collective_all_reduce", "--comm_order=tree"};
  const RankTraining towers = train_towers(1, 4, order);
  Flags apart = order;
  apart.insert(apart.end(), {"--comm_transport=mpi", "--all_reduce_spec=direct#2"});
  const RankTraining mixed = train_towers(2, 2, apart);
  EXPECT_EQ(mixed.weights, towers.weights) << mixed.run.err;
  EXPECT_EQ(mixed.hashes().size(), 1U);
}

// Measuring the links sends signals to ranks of another process, which have no memory in common.
TEST_F(TowersOfProcesses, MeasureTheLinksBetweenProcessesThatShareNoMemory) {
  const Finished run =
      run_ranks(2, {"--model=trivial", "--batch_size=2", "--num_batches=2", "--num_gpus=2",
                    "--num_warmup_batches=1", "--num_intra_threads=1", "--nomeasure_ceilings",
                    "--variable_update=replicated", "--comm_transport=mpi"});
  EXPECT_EQ(codes_of(run), (std::map<int, int>{{0, 0}, {1, 0}})) << run.err;
  EXPECT_EQ(times_in(run.err, "comm: limits: "), 1U) << run.err;
}

TEST_F(TowersOfProcesses, NameTheProcessThatDies) {
  const Finished run = run_ranks(
      2,
      {"--model=trivial", "--batch_size=2", "--num_batches=100000000", "--display_every=1",
       "--variable_update=replicated", "--num_gpus=2", "--nomeasure_ceilings"},
      [](const Finished& so_far) {
        return so_far.out.find("\n3\timages/sec") != std::string::npos;
      },
      [] { ::kill(process_of_rank(1), SIGKILL); });
  EXPECT_EQ(times_in(run.err, "rank 0 left with 75"), 1U) << run.err;
  EXPECT_NE(run.err.find("rank 1 is lost: "), std::string::npos) << run.err;
  EXPECT_EQ(run.err.find("rank 0 is lost: "), std::string::npos) << run.err;
  EXPECT_TRUE(processes_of_ranks().empty());
}

}  // namespace
}  // namespace cnn::tests
