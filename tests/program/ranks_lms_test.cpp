#include <csignal>
#include <map>
#include <string>
#include <vector>

#include "tests/program/rank_training.h"

namespace cnn::tests {
namespace {

using Flags = std::vector<std::string>;

class RanksWithLms : public SeveralProcesses {};
class SlowRanksWithLms : public SeveralProcesses {};

// Trains four steps with a small size threshold of LMS. Rank 0 plans and the other ranks follow its
// plan.
RankTraining train_in_little(int processes, const Flags& more) {
  Flags flags{"--variable_update=replicated", "--batch_size=8", "--lms_size_threshold=8"};
  flags.insert(flags.end(), more.begin(), more.end());
  return train_as(processes, flags);
}

void expect_a_plan(const RankTraining& training) {
  const nlohmann::json& plan = training.result.at("plan").at("lms");
  EXPECT_TRUE(plan.at("necessary").get<bool>());
  EXPECT_GT(plan.at("swapped_tensors").get<int>() + plan.at("recomputed_nodes").get<int>(), 0);
  EXPECT_LE(training.result.at("memory").at("arena_peak_bytes").get<std::size_t>(),
            plan.at("budget_bytes").get<std::size_t>());
  EXPECT_EQ(training.hashes().size(), 1U);
}

TEST_F(RanksWithLms, HaveTheBitsOfTheRunWithoutIt) {
  const RankTraining whole = train_in_little(2, {});
  EXPECT_EQ(whole.hashes().size(), 1U);
  const RankTraining less =
      train_in_little(2, {"--lms", "--device_memory_mb=10", "--emulate_link_gbps=4"});
  expect_a_plan(less);
  EXPECT_EQ(less.weights, whole.weights) << less.run.err;
  EXPECT_EQ(less.hashes(), whole.hashes());
  EXPECT_EQ(times_in(less.run.err, "[LMS][0] plan: keep"), 2U) << less.run.err;
  EXPECT_NE(less.run.err.find("planned again by measured times"), std::string::npos);
}

TEST_F(SlowRanksWithLms, GoByAFileThatRankZeroHasAndLeaveGradientsWhereTheyAre) {
  const TemporaryFolder folder;
  const std::string plan = folder / "plan.json";
  const RankTraining made =
      train_in_little(2, {"--lms", "--device_memory_mb=10", "--lms_plan_out=" + plan});
  const RankTraining loaded =
      train_in_little(2, {"--lms", "--device_memory_mb=10", "--lms_plan_file=" + plan});
  EXPECT_EQ(loaded.weights, made.weights) << loaded.run.err;
  EXPECT_EQ(loaded.result.at("plan").at("lms").at("plan_file"), plan);
  const auto steps = nlohmann::json::parse(read_file(plan)).at("steps");
  std::size_t reductions = 0, moved = 0;
  for (const auto& step : steps) {
    const std::vector<std::string> words = words_of(step.get<std::string>());
    reductions += words[0] == "run" && words[2] == "all_reduce" ? 1 : 0;
    moved += words[0] == "out" ? 1 : 0;
    if (words[0] == "out") {
      EXPECT_EQ(words[2].find("backward"), std::string::npos) << step;
    }
  }
  EXPECT_GT(reductions, 0U);
  EXPECT_GT(moved, 0U);
}

TEST_F(RanksWithLms, EndByTheReasonOfRankZeroWhereNothingFits) {
  const Finished run = run_as(2, {"--model=resnet20", "--data_name=cifar10", "--batch_size=8",
                                  "--variable_update=replicated", "--lms", "--lms_limit=1"});
  EXPECT_NE(run.status, 0);
  EXPECT_NE(run.err.find("does not fit with --lms"), std::string::npos) << run.err;
  EXPECT_EQ(times_in(run.err, "rank 0 left with 3"), 1U) << run.err;
  EXPECT_EQ(times_in(run.err, "left with 0"), 0U) << run.err;
}

// Two ranks of one machine each plan with half of its link and copy at half its speed.
TEST_F(SlowRanksWithLms, DivideTheLinkOfTheirMachine) {
  const auto moved = [](int processes, const Flags& more) {
    Flags flags{"--lms", "--device_memory_mb=10", "--emulate_link_gbps=0.2", "--lms_recompute=off"};
    flags.insert(flags.end(), more.begin(), more.end());
    return train_in_little(processes, flags).result.at("plan").at("lms");
  };
  const nlohmann::json alone = moved(1, {}), processes = moved(2, {}),
                       threads = moved(1, {"--num_gpus=2"});
  const auto rate = [](const nlohmann::json& lms) {
    return lms.at("measured_out_bytes_per_second").get<double>();
  };
  EXPECT_GT(rate(alone), 0.101e9);
  EXPECT_LE(rate(alone), 0.202e9);
  for (const nlohmann::json& two : {processes, threads}) {
    EXPECT_LE(rate(two), 0.101e9);
    EXPECT_GT(two.at("predicted_step_seconds").get<double>(),
              two.at("swapped_out_bytes").get<double>() / 0.101e9);
  }
}

// Planning ResNet-152 near its least memory takes seconds, and the other rank waits meanwhile.
TEST_F(RanksWithLms, EndTogetherWhenASignalComesDuringPlanning) {
  for (const std::vector<int>& ranks : {std::vector<int>{0}, std::vector<int>{0, 1}}) {
    const TemporaryFolder folder;
    const Finished run = run_ranks(
        2,
        {"--model=resnet152", "--batch_size=16", "--variable_update=replicated", "--lms",
         "--lms_limit=1100", "--nomeasure_ceilings", "--result_json=" + (folder / "r.json")},
        [](const Finished& so_far) { return times_in(so_far.out, "Generating training") > 0; },
        [&] {
          for (const int rank : ranks) {
            ::kill(process_of_rank(rank), SIGTERM);
          }
        });
    EXPECT_EQ(codes_of(run), (std::map<int, int>{{0, 128 + SIGTERM}, {1, 128 + SIGTERM}}))
        << run.err;
    EXPECT_EQ(times_in(run.err, "interrupted: SIGTERM"), 1U) << run.err;
    EXPECT_EQ(times_in(run.err, "[LMS][0] plan: keep"), 0U) << run.err;
    const auto result = nlohmann::json::parse(read_file(folder / "r.json"));
    EXPECT_EQ(result.at("interrupted_by"), "SIGTERM");
  }
}

TEST_F(SlowRanksWithLms, HaveTheSameBitsOnThreadsOfProcesses) {
  const Flags towers{"--num_gpus=2"}, less{"--num_gpus=2", "--lms", "--lms_limit=9"};
  const RankTraining four = train_in_little(2, towers);
  const RankTraining four_in_little = train_in_little(2, less);
  expect_a_plan(four_in_little);
  EXPECT_EQ(four_in_little.weights, four.weights) << four_in_little.run.err;
  const RankTraining two = train_in_little(1, towers), two_in_little = train_in_little(1, less);
  expect_a_plan(two_in_little);
  EXPECT_EQ(two_in_little.weights, two.weights) << two_in_little.run.err;
}

TEST_F(SlowRanksWithLms, HaveTheSameBitsWhereTheySendSixteenBits) {
  const Flags narrow{"--comm_transport=mpi", "--comm_wire=bf16"};
  Flags less = narrow;
  less.insert(less.end(), {"--lms", "--lms_limit=9"});
  EXPECT_EQ(train_in_little(2, less).weights, train_in_little(2, narrow).weights);
}

}  // namespace
}  // namespace cnn::tests
