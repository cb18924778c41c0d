#include <chrono>
#include <csignal>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/program/program.h"

namespace cnn::tests {
namespace {

using Words = std::vector<std::string>;

// Returns flags of a run that does not end by itself during a test.
Words long_run(const TemporaryFolder& folder, const Words& more) {
  Words flags{"--device=cpu",
              "--data_name=cifar10",
              "--model=alexnet",
              "--batch_size=4",
              "--display_every=1",
              "--nomeasure_ceilings",
              "--num_batches=1000000",
              "--train_dir=" + (folder / "t"),
              "--result_json=" + (folder / "r.json")};
  flags.insert(flags.end(), more.begin(), more.end());
  return flags;
}

auto printed(const std::string& text) {
  return [text](const Finished& so_far) { return so_far.out.find(text) != std::string::npos; };
}

nlohmann::json result_of(const TemporaryFolder& folder) {
  return nlohmann::json::parse(read_file(folder / "r.json"));
}

TEST(Signal, EndsATrainingWithItsTotalsItsCheckpointAndItsResult) {
  for (const auto& [number, name] :
       {std::pair(SIGINT, "SIGINT"), std::pair(SIGTERM, "SIGTERM"), std::pair(SIGHUP, "SIGHUP")}) {
    const TemporaryFolder folder;
    const Finished run = run_and_signal(long_run(folder, {"--num_warmup_batches=0"}),
                                        printed("\n3\timages/sec"), {number});
    EXPECT_EQ(run.status, 128 + number) << run.err;
    EXPECT_NE(run.out.find("total images/sec: "), std::string::npos) << run.out;
    EXPECT_NE(run.err.find(name), std::string::npos) << run.err;
    const auto result = result_of(folder);
    EXPECT_EQ(result["interrupted_by"], name);
    const std::size_t steps = result["steps"].size();
    EXPECT_EQ(steps, run.step_lines().size());
    EXPECT_FALSE(result["summary"].is_null());
    EXPECT_TRUE(std::filesystem::exists(
        folder / ("t/model.ckpt-" + std::to_string(steps) + ".safetensors")));
  }
}

TEST(Signal, EndsAWarmUp) {
  const TemporaryFolder folder;
  const Finished run = run_and_signal(long_run(folder, {"--num_warmup_batches=1000000"}),
                                      printed("Running warm up"), {SIGTERM});
  EXPECT_EQ(run.status, 128 + SIGTERM) << run.err;
  EXPECT_TRUE(run.step_lines().empty());
  EXPECT_TRUE(result_of(folder)["steps"].empty());
  EXPECT_TRUE(std::filesystem::exists(folder / "t/checkpoint"));
}

TEST(Signal, EndsAnEvaluationDuringTraining) {
  const TemporaryFolder folder;
  const Finished run = run_and_signal(
      long_run(folder, {"--num_warmup_batches=0", "--eval_during_training_every_n_steps=2",
                        "--num_eval_batches=1000000"}),
      printed("examples/sec"), {SIGINT});
  EXPECT_EQ(run.status, 128 + SIGINT) << run.err;
  EXPECT_EQ(result_of(folder)["steps"].size(), 2U);
  EXPECT_TRUE(std::filesystem::exists(folder / "t/model.ckpt-2.safetensors"));
  EXPECT_EQ(run.out.find("Running final evaluation"), std::string::npos);
}

TEST(Signal, EndsAnEvaluationThatWaitsForTheNextCheckpoint) {
  const TemporaryFolder folder;
  const Finished run = run_and_signal(long_run(folder, {"--eval", "--eval_interval_secs=1000"}),
                                      printed("Checkpoint not found"), {SIGINT});
  EXPECT_EQ(run.status, 128 + SIGINT) << run.err;
  EXPECT_EQ(result_of(folder)["interrupted_by"], "SIGINT");
}

TEST(Signal, EndsARunThatWaitsForItsTurn) {
  const TemporaryFolder folder;
  const std::string turns = folder / "turns";
  const int other = open(turns.c_str(), O_RDWR | O_CREAT, 0600);
  struct flock all {};
  all.l_type = F_WRLCK;
  ASSERT_EQ(fcntl(other, F_OFD_SETLK, &all), 0);
  const Finished run = run_and_signal(
      long_run(folder, {"--take_turns=" + turns}),
      [&](const Finished&) { return std::filesystem::exists(folder / "t/.lock"); }, {SIGINT});
  close(other);
  EXPECT_EQ(run.status, 128 + SIGINT) << run.err;
  EXPECT_EQ(result_of(folder)["interrupted_by"], "SIGINT");
  EXPECT_EQ(run.out.find("Running warm up"), std::string::npos) << run.out;
}

// Returns flags of a training whose planning takes seconds, because its budget is near the least
// memory.
Words long_planning(const TemporaryFolder& folder, const Words& more) {
  Words flags{"--model=resnet152", "--batch_size=64", "--lms", "--lms_limit=2200",
              "--result_json=" + (folder / "r.json")};
  flags.insert(flags.end(), more.begin(), more.end());
  return flags;
}

TEST(Signal, EndsThePlanningOfLargeModelSupportAtOnce) {
  for (const auto& [number, name] : {std::pair(SIGINT, "SIGINT"), std::pair(SIGTERM, "SIGTERM")}) {
    const TemporaryFolder folder;
    const Finished run = run_and_signal(long_planning(folder, {"--simulate=p100-pcie3"}),
                                        printed("Generating training model"), {number});
    EXPECT_EQ(run.status, 128 + number) << run.err;
    EXPECT_EQ(run.err, "interrupted: " + std::string(name) + "\n");
    EXPECT_EQ(result_of(folder)["interrupted_by"], name);
    EXPECT_TRUE(result_of(folder)["plan"].is_null());
  }
}

TEST(Signal, EndsASearchForTheLargestBatchOfLargeModelSupport) {
  const TemporaryFolder folder;
  const auto start = std::chrono::steady_clock::now();
  const Finished run =
      run_and_signal(long_planning(folder, {"--simulate=p100-pcie3", "--find_max_batch"}),
                     [&](const Finished&) {
                       return std::chrono::steady_clock::now() - start > std::chrono::seconds(1);
                     },
                     {SIGINT});
  EXPECT_EQ(run.status, 128 + SIGINT) << run.err;
  EXPECT_EQ(result_of(folder)["interrupted_by"], "SIGINT");
  EXPECT_EQ(run.out.find("Largest batch_size"), std::string::npos) << run.out;
}

// The result goes to a pipe without a reader, so the run would wait for ever.
TEST(Signal, EndsTheProcessAtOnceTheSecondTime) {
  const TemporaryFolder folder;
  ASSERT_EQ(mkfifo((folder / "r.json").c_str(), 0600), 0);
  const Finished run = run_and_signal(long_run(folder, {"--num_warmup_batches=0"}),
                                      printed("\n3\timages/sec"), {SIGINT, SIGINT, SIGINT, SIGINT});
  EXPECT_EQ(run.status, 128 + SIGINT) << run.err;
  EXPECT_NE(run.out.find("total images/sec: "), std::string::npos) << run.out;
}

}  // namespace
}  // namespace cnn::tests
