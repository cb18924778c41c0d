#include "tests/program/ranks.h"

#include <algorithm>
#include <csignal>
#include <gtest/gtest.h>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

namespace cnn::tests {
namespace {

using Words = std::vector<std::string>;

class Ranks : public testing::Test {
 protected:
  void SetUp() override {
    if (const std::string why = why_no_ranks(); !why.empty()) {
      GTEST_SKIP() << why;
    }
  }
};

Words joined_flags(Words flags, const Words& more) {
  flags.insert(flags.end(), more.begin(), more.end());
  return flags;
}

// Trains on synthetic images; each rank draws its own.
Words training_of_ranks(const TemporaryFolder& folder, const Words& more) {
  return joined_flags({"--data_name=cifar10", "--model=resnet20", "--batch_size=4",
                       "--num_batches=3", "--num_warmup_batches=1", "--display_every=1",
                       "--init_learning_rate=0.01", "--optimizer=momentum", "--nomeasure_ceilings",
                       "--train_dir=" + (folder / "t"), "--result_json=" + (folder / "r.json")},
                      more);
}

nlohmann::json result_of_ranks(const TemporaryFolder& folder) {
  return nlohmann::json::parse(read_file(folder / "r.json"));
}

std::string weights_of(const TemporaryFolder& folder, int step) {
  return read_file(folder / ("t/model.ckpt-" + std::to_string(step) + ".safetensors"));
}

bool mentions(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

void expect_the_bits_of_towers(int ranks, const Words& of_processes) {
  const TemporaryFolder towers, processes;
  const std::string n = std::to_string(ranks);
  const Finished one = run_program(training_of_ranks(
      towers, {"--device=cpu", "--num_gpus=" + n, "--variable_update=replicated"}));
  ASSERT_EQ(one.status, 0) << one.err;
  const Finished many = run_ranks(ranks, training_of_ranks(processes, of_processes));
  ASSERT_EQ(many.status, 0) << many.err;
  EXPECT_EQ(weights_of(processes, 4), weights_of(towers, 4)) << many.err;
  std::set<std::string> hashes;
  for (const TemporaryFolder* const folder : {&towers, &processes}) {
    const auto result = result_of_ranks(*folder);
    ASSERT_EQ(result["ranks"].size(), static_cast<std::size_t>(ranks));
    for (const auto& rank : result["ranks"]) {
      hashes.insert(rank["weights_hash"].get<std::string>());
    }
    EXPECT_EQ(result["steps"][0]["loss"], result_of_ranks(towers)["steps"][0]["loss"]);
  }
  EXPECT_EQ(hashes.size(), 1U);
}

TEST_F(Ranks, HaveTheBitsOfTwoTowersAsTwoProcesses) {
  expect_the_bits_of_towers(2, {"--variable_update=horovod"});
}

TEST_F(Ranks, HaveTheBitsOfFourTowersAsFourProcesses) {
  expect_the_bits_of_towers(4, {"--variable_update=replicated"});
}

TEST_F(Ranks, HaveTheBitsOfTowersWithMessages) {
  expect_the_bits_of_towers(2,
                            {"--variable_update=distributed_all_reduce", "--comm_transport=mpi"});
}

TEST_F(Ranks, HaveTheBitsOfTwoTowersWithSumsByMpi) {
  expect_the_bits_of_towers(2, {"--variable_update=horovod", "--comm_backend=mpi"});
}

TEST_F(Ranks, EachPrintTheirSpeedAndTheTotalAndTheFirstTheRest) {
  const TemporaryFolder folder;
  const Finished run = run_ranks(
      2, training_of_ranks(folder, {"--variable_update=horovod", "--horovod_device=cpu"}));
  ASSERT_EQ(run.status, 0) << run.err;
  const Words lines = run.lines();
  for (const char* const once :
       {"Batch size:  8 global", "             4 per device",
        "Devices:     ['horovod/cpu:0', 'horovod/cpu:1']", "Variables:   horovod",
        "Horovod on:  cpu", "Generating training model", "Running warm up", "Done warm up"}) {
    EXPECT_EQ(std::ranges::count(lines, once), 1) << once << "\n" << run.out;
  }
  const Words steps = run.step_lines();
  for (const char* const step : {"1", "2", "3"}) {
    EXPECT_EQ(std::ranges::count_if(
                  steps, [&](const std::string& line) { return words_of(line).front() == step; }),
              2)
        << run.out;
  }
  EXPECT_NE(words_of(steps[0]).back(), words_of(steps[1]).back())
      << "each rank prints its own loss";
  EXPECT_EQ(std::ranges::count_if(
                lines, [](const std::string& line) { return line.starts_with("total images"); }),
            2);
  const auto result = result_of_ranks(folder);
  EXPECT_EQ(result["steps"].size(), 3U);
  EXPECT_NEAR(result["steps"][0]["images_per_sec"].get<double>() *
                  result["steps"][0]["seconds"].get<double>(),
              8, 1e-6);
  EXPECT_EQ(codes_of(run), (std::map<int, int>{{0, 0}, {1, 0}}));
}

TEST_F(Ranks, NameTheOneThatDiesAndEnd) {
  const Finished run = run_ranks(
      3,
      {"--model=trivial", "--batch_size=2", "--num_batches=100000000", "--display_every=1",
       "--variable_update=horovod", "--nomeasure_ceilings"},
      [](const Finished& so_far) { return mentions(so_far.out, "\n3\timages/sec"); },
      [] { ::kill(process_of_rank(1), SIGKILL); });
  EXPECT_EQ(codes_of(run), (std::map<int, int>{{0, 75}, {1, 128 + SIGKILL}, {2, 75}})) << run.err;
  EXPECT_TRUE(mentions(run.err, "rank 1 is lost: ")) << run.err;
  EXPECT_FALSE(mentions(run.err, "rank 0 is lost: ")) << run.err;
  EXPECT_FALSE(mentions(run.err, "rank 2 is lost: ")) << run.err;
  EXPECT_TRUE(processes_of_ranks().empty());
}

TEST_F(Ranks, NameTheRankThatDiesWithMessages) {
  const Finished run = run_ranks(
      3,
      {"--model=trivial", "--batch_size=2", "--num_batches=100000000", "--display_every=1",
       "--variable_update=horovod", "--nomeasure_ceilings", "--comm_transport=mpi"},
      [](const Finished& so_far) { return mentions(so_far.out, "\n3\timages/sec"); },
      [] { ::kill(process_of_rank(2), SIGKILL); });
  EXPECT_EQ(codes_of(run), (std::map<int, int>{{0, 75}, {1, 75}, {2, 128 + SIGKILL}})) << run.err;
  EXPECT_TRUE(mentions(run.err, "rank 2 is lost: ")) << run.err;
  EXPECT_TRUE(processes_of_ranks().empty());
}

TEST_F(Ranks, StopTogetherWhenOneIsAskedTo) {
  const TemporaryFolder folder;
  const Finished run = run_ranks(
      2, training_of_ranks(folder, {"--variable_update=horovod", "--num_batches=100000000"}),
      [](const Finished& so_far) { return mentions(so_far.out, "\n2\timages/sec"); },
      [] { ::kill(process_of_rank(1), SIGTERM); });
  EXPECT_EQ(codes_of(run), (std::map<int, int>{{0, 128 + SIGTERM}, {1, 128 + SIGTERM}})) << run.err;
  EXPECT_TRUE(mentions(run.out, "total images/sec")) << run.out;
  EXPECT_EQ(run.step_lines().size() % 2, 0U) << run.out;
  const auto result = result_of_ranks(folder);
  EXPECT_EQ(result["interrupted_by"], "SIGTERM");
  EXPECT_EQ(2 * result["steps"].size(), run.step_lines().size());
  EXPECT_FALSE(weights_of(folder, 1 + static_cast<int>(result["steps"].size())).empty());
}

TEST_F(Ranks, GoOnFromACheckpointOfOne) {
  const TemporaryFolder folder;
  const Words flags{"--variable_update=horovod", "--num_warmup_batches=0"};
  Finished run = run_program(training_of_ranks(folder, joined_flags(flags, {"--device=cpu"})));
  ASSERT_EQ(run.status, 0) << run.err;
  run = run_ranks(2, training_of_ranks(folder, joined_flags(flags, {"--num_batches=5"})));
  ASSERT_EQ(run.status, 0) << run.err;
  EXPECT_TRUE(mentions(run.err, "at global step 3")) << run.err;
  EXPECT_EQ(result_of_ranks(folder)["steps"].size(), 2U);
  EXPECT_FALSE(weights_of(folder, 5).empty());
  EXPECT_FALSE(result_of_ranks(folder)["ranks"].empty());
}

TEST_F(Ranks, RefuseASimulationInOneLine) {
  const std::string why = "start it without mpirun, with --simulate_ranks=2";
  Words words{"/bin/bash",
              CNN_SOURCE_DIR "/tests/scripts/as_ranks.sh",
              "2",
              CNN_PROGRAM,
              "--simulate=h200",
              "--model=trivial"};
  const Finished run = run_and(
      words, [](const Finished&) { return false; }, [] {});
  EXPECT_NE(run.status, 0);
  EXPECT_EQ(run.err.find(why), run.err.rfind(why)) << run.err;
  EXPECT_TRUE(mentions(run.err, why)) << run.err;
}

}  // namespace
}  // namespace cnn::tests
