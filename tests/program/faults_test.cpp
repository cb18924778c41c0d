#include <csignal>
#include <gtest/gtest.h>
#include <map>
#include <nlohmann/json.hpp>
#include <random>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "tests/program/ranks.h"

namespace cnn::tests {
namespace {

using Words = std::vector<std::string>;

class RanksWithFaults : public testing::Test {
 protected:
  void SetUp() override {
    if (const std::string why = why_no_ranks(); !why.empty()) {
      GTEST_SKIP() << why;
    }
  }
};
class SlowRanksWithFaults : public RanksWithFaults {};

// An injected fault of one rank of mpirun.
struct RankFault {
  int ranks = 2, rank = 0, step = 1, after = 0;
  std::string what;
  bool by_messages = false;

  std::string spec() const {
    return "rank=" + std::to_string(rank) + ",step=" + std::to_string(step) +
           ",after=" + std::to_string(after) + ",what=" + what;
  }
};

RankFault random_fault(std::mt19937& random) {
  const auto below = [&random](int n) {
    return static_cast<int>(random() % static_cast<unsigned>(n));
  };
  const Words kinds{"exit", "kill", "kill", "stop", "delay:50ms", "corrupt"};
  RankFault fault{.ranks = 2 + below(2), .step = 1 + below(60), .after = below(8)};
  fault.rank = below(fault.ranks);
  fault.what = kinds[static_cast<std::size_t>(below(static_cast<int>(kinds.size())))];
  fault.by_messages = below(2) == 0;
  if (fault.what == "corrupt") {
    fault.step = 1;  // only the first step's sum is checked
  }
  return fault;
}

// mpirun continues a stopped rank in order to end it, and the rank may then learn that it is lost.
std::set<int> expected_codes(const RankFault& fault, int rank) {
  const bool own = rank == fault.rank;
  if (fault.what == "corrupt") {
    return {rank == 0 ? 1 : 0};
  }
  if (fault.what == "exit" || fault.what == "kill") {
    return {!own ? 75 : fault.what == "exit" ? 1 : 128 + SIGKILL};
  }
  if (fault.what == "stop") {
    return own ? std::set<int>{75, 128 + SIGTERM, 128 + SIGKILL} : std::set<int>{75};
  }
  return {0};
}

// Returns every rank that the output reports as lost.
std::set<std::string> named_in(const std::string& err) {
  std::set<std::string> named;
  std::size_t at = 0;
  while ((at = err.find(" is lost: ", at)) != std::string::npos) {
    const std::size_t rank = err.rfind("rank ", at) + 5;
    named.insert(err.substr(rank, at - rank));
    ++at;
  }
  return named;
}

void expect_what_the_fault_does(const RankFault& fault) {
  const TemporaryFolder folder;  // for all files of MPI
  const Environment temporary("TMPDIR", folder.path().c_str());
  const Environment segments("OMPI_MCA_btl_vader_backing_directory", folder.path().c_str());
  const Environment watchdog("MPIEXEC_TIMEOUT", "60");
  const Environment network("OMPI_MCA_btl", "self,vader");
  // The seconds that mpirun leaves the other ranks to end by themselves; it always waits for all of
  // them.
  const Environment grace("OMPI_MCA_odls_base_sigkill_timeout", "2");
  const Finished run = run_ranks_of(
      "all_reduce_benchmark", fault.ranks,
      {"-b", "4096", "-e", "4096", "-n", "1", "-w", "0", "--memcpy=0", "--comm_calibrate=off",
       "--comm_peer_timeout_s=0.5", "--comm_fault=" + fault.spec(),
       fault.by_messages ? "--comm_transport=mpi" : "--comm_transport=auto"});
  const std::string about =
      fault.spec() + (fault.by_messages ? " by messages\n" : "\n") + run.out + run.err;
  std::map<int, int> codes = codes_of(run);
  for (int rank = 0; rank < fault.ranks; ++rank) {
    ASSERT_EQ(codes.count(rank), 1U) << about;
    EXPECT_TRUE(expected_codes(fault, rank).contains(codes[rank])) << about;
  }
  const bool loses = fault.what == "exit" || fault.what == "kill" || fault.what == "stop";
  EXPECT_EQ(named_in(run.err),
            loses ? std::set<std::string>{std::to_string(fault.rank)} : std::set<std::string>{})
      << about;
  EXPECT_EQ(run.out.find("WRONG") != std::string::npos, fault.what == "corrupt") << about;
  EXPECT_EQ(run.err.find("time limit"), std::string::npos) << about;
  EXPECT_TRUE(processes_of_ranks().empty()) << about;
  for (const std::string& name : folder.names()) {
    EXPECT_EQ(name.find("vader_segment"), std::string::npos) << name << " of " << about;
  }
}

void expect_what_faults_do(int count, unsigned seed) {
  std::mt19937 random(seed);
  for (int i = 0; i < count && !testing::Test::HasFailure(); ++i) {
    expect_what_the_fault_does(random_fault(random));
  }
}

TEST_F(RanksWithFaults, NameTheRightOne) { expect_what_faults_do(10, 1); }
TEST_F(RanksWithFaults, NameTheRightOneAgain) { expect_what_faults_do(10, 2); }
TEST_F(SlowRanksWithFaults, NameTheRightOne) { expect_what_faults_do(50, 5); }
TEST_F(SlowRanksWithFaults, NameTheRightOneAgain) { expect_what_faults_do(50, 6); }
TEST_F(SlowRanksWithFaults, NameTheRightOneOnceMore) { expect_what_faults_do(50, 7); }
TEST_F(SlowRanksWithFaults, NameTheRightOneToTheEnd) { expect_what_faults_do(50, 8); }

Words tiny_training(const TemporaryFolder& folder, const Words& more) {
  Words flags{"--data_name=cifar10",  "--model=resnet20",          "--batch_size=2",
              "--num_batches=6",      "--num_warmup_batches=0",    "--save_model_steps=2",
              "--optimizer=momentum", "--init_learning_rate=0.01", "--nomeasure_ceilings",
              "--comm_calibrate=off", "--variable_update=horovod", "--train_dir=" + (folder / "t")};
  flags.insert(flags.end(), more.begin(), more.end());
  return flags;
}

std::string final_weights(const TemporaryFolder& folder) {
  return read_file(folder / "t/model.ckpt-6.safetensors");
}

// Ranks of one host communicate by shared memory or by MPI messages; both must report the place.
TEST_F(RanksWithFaults, SayInWhichStepBucketAndPhaseTheyLostOne) {
  for (const char* transport : {"auto", "mpi"}) {
    const TemporaryFolder folder;
    const Finished run =
        run_ranks(2, tiny_training(folder, {"--comm_fault=rank=1,step=3,bucket=0,what=kill",
                                            std::string("--comm_transport=") + transport}));
    EXPECT_NE(run.err.find(" | in step 3, bucket 0, "), std::string::npos) << run.err;
  }
}

TEST_F(RanksWithFaults, GoOnFromTheCheckpointAsIfNothingHadHappened) {
  const TemporaryFolder undisturbed, disturbed;
  Finished run = run_ranks(2, tiny_training(undisturbed, {}));
  ASSERT_EQ(run.status, 0) << run.err;
  run = run_ranks(2, tiny_training(disturbed, {"--comm_fault=rank=1,step=6,after=1,what=kill"}));
  EXPECT_EQ(codes_of(run), (std::map<int, int>{{0, 75}, {1, 128 + SIGKILL}})) << run.err;
  EXPECT_TRUE(final_weights(disturbed).empty());
  run = run_ranks(2, tiny_training(disturbed, {}));
  ASSERT_EQ(run.status, 0) << run.err;
  EXPECT_NE(run.err.find("at global step 4"), std::string::npos) << run.err;
  EXPECT_FALSE(final_weights(undisturbed).empty());
  EXPECT_EQ(final_weights(disturbed), final_weights(undisturbed));
}

TEST_F(RanksWithFaults, SayWhoseWeightsDifferAtTheEnd) {
  const TemporaryFolder folder;
  const Finished run =
      run_ranks(2, tiny_training(folder, {"--comm_fault=rank=1,step=3,what=corrupt"}));
  EXPECT_NE(run.err.find("the weights of rank 1 are not those of rank 0"), std::string::npos)
      << run.err;
  EXPECT_EQ(codes_of(run), (std::map<int, int>{{0, 1}, {1, 1}})) << run.err;
}

TEST_F(RanksWithFaults, EndAtTheSumThatDiffersIfTheyAreCompared) {
  const TemporaryFolder folder;
  const Finished run = run_ranks(
      2, tiny_training(folder, {"--comm_fault=rank=1,step=3,what=corrupt", "--comm_check=hash"}));
  EXPECT_NE(run.err.find("ranks have different sums: bucket 0 on rank "), std::string::npos)
      << run.err;
  EXPECT_EQ(run.err.find("the weights of rank 1"), std::string::npos) << run.err;
  EXPECT_NE(run.status, 0);
}

TEST_F(RanksWithFaults, SayForWhomTheyWait) {
  const TemporaryFolder folder;
  const Finished run = run_ranks(
      2, tiny_training(
             folder, {"--comm_fault=rank=1,step=2,what=delay:3000ms", "--comm_stall_warn_s=0.2"}));
  EXPECT_EQ(run.status, 0) << run.err;
  EXPECT_NE(run.err.find("comm: rank 0 has waited for rank 1 for "), std::string::npos) << run.err;
  EXPECT_NE(run.err.find("; rank 1 computes step 2\n"), std::string::npos) << run.err;
}

TEST_F(RanksWithFaults, AreOneLineIfTheyMakeNoSense) {
  const Finished run = run_ranks(2, {"--model=trivial", "--batch_size=2",
                                     "--variable_update=horovod", "--comm_fault=rank=2,what=kill"});
  EXPECT_NE(run.status, 0);
  const std::string line = "--comm_fault=rank=2,what=kill: there are 2 ranks, from 0 on";
  EXPECT_NE(run.err.find(line), std::string::npos) << run.err;
  EXPECT_EQ(run.err.find(line), run.err.rfind(line)) << run.err;
}

TEST_F(RanksWithFaults, SayOnceWhatIsWrongWithTheirFlags) {
  for (const char* program : {"cnn_benchmarks", "all_reduce_benchmark"}) {
    const Finished run = run_ranks_of(program, 3, {"--model=resnet50", "--batch_size=many"});
    EXPECT_NE(run.status, 0);
    const std::size_t first = run.err.find("--batch_size");
    EXPECT_NE(first, std::string::npos) << run.err;
    EXPECT_EQ(first, run.err.rfind("--batch_size")) << run.err;
  }
}

TEST_F(RanksWithFaults, NameTheFlagOfABenchmarkInWhichTheyDiffer) {
  for (const auto& [flags, line] :
       {std::pair("-n 50", "rank 0 has -n 5, rank 1 has -n 50: start all ranks with the same"),
        std::pair("--comm_window=3", "rank 0 has --comm_window=0, rank 1 has --comm_window=3: ")}) {
    const Environment differing("CNN_TEST_FLAGS_OF_RANK_1", flags);
    const Finished run =
        run_ranks_of("all_reduce_benchmark", 2, {"-b", "4K", "-e", "4K", "-n", "5"});
    EXPECT_NE(run.status, 0);
    EXPECT_EQ(run.out.find("4096"), std::string::npos) << run.out;
    EXPECT_NE(run.err.find(line), std::string::npos) << run.err;
    EXPECT_EQ(run.err.find(line), run.err.rfind(line)) << run.err;
    EXPECT_EQ(run.err.find(" is lost"), std::string::npos) << run.err;
  }
}

TEST_F(RanksWithFaults, AreOneLineWhereThereIsNoGpuToReduceOn) {
  const Finished run = run_ranks_of("all_reduce_benchmark", 2,
                                    {"--device=gpu", "-b", "4096", "-e", "4096", "-n", "1"});
  if (run.status == 0) {
    GTEST_SKIP() << "this machine has a GPU";
  }
  const std::size_t first = run.err.find("--device=gpu");
  EXPECT_NE(first, std::string::npos) << run.err;
  EXPECT_EQ(first, run.err.rfind("--device=gpu: ")) << run.err;
}

}  // namespace
}  // namespace cnn::tests
