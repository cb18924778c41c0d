#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>
#include <set>

#include "tests/program/ranks.h"

namespace cnn::tests {
namespace {

using testing::HasSubstr;
using Words = std::vector<std::string>;

Words flags_with(const Words& more) {
  Words flags{"--model=trivial", "--data_name=cifar10", "--batch_size=2", "--num_warmup_batches=1",
              "--nomeasure_ceilings"};
  flags.insert(flags.end(), more.begin(), more.end());
  return flags;
}

// Expects that the run ends with the first step that completes after this time, whatever the steps
// take.
void expect_least_steps(const nlohmann::json& result, double seconds) {
  double passed = 0;
  for (const auto& step : result.at("steps")) {
    EXPECT_LT(passed, seconds);
    passed += step.at("seconds").get<double>();
  }
  EXPECT_GE(passed, seconds);
}

TEST(MinimumTime, EndsTheRunWithTheFirstStepByWhichItHasPassed) {
  const TemporaryFolder folder;
  const Finished run = run_program(
      flags_with({"--device=cpu", "--min_time=0.2", "--result_json=" + (folder / "r.json")}));
  ASSERT_EQ(run.status, 0) << run.err;
  EXPECT_THAT(run.out, HasSubstr("Num batches: as many as take 0.2 s\n"));
  EXPECT_THAT(run.out, HasSubstr("total images/sec: "));
  const auto result = nlohmann::json::parse(read_file(folder / "r.json"));
  expect_least_steps(result, 0.2);
  EXPECT_EQ(result.at("config").at("min_time"), 0.2);
}

TEST(MinimumTime, EndsAllRanksWithTheSameStep) {
  if (const std::string why = why_no_ranks(); !why.empty()) {
    GTEST_SKIP() << why;
  }
  const TemporaryFolder folder;
  const Finished run = run_ranks(
      2, flags_with({"--variable_update=horovod", "--min_time=0.2", "--train_dir=" + (folder / "t"),
                     "--result_json=" + (folder / "r.json")}));
  ASSERT_EQ(run.status, 0) << run.err;
  const auto result = nlohmann::json::parse(read_file(folder / "r.json"));
  expect_least_steps(result, 0.2);
  std::set<std::string> weights;
  for (const auto& rank : result.at("ranks")) {
    weights.insert(rank.at("weights_hash").get<std::string>());
  }
  EXPECT_EQ(result.at("ranks").size(), 2U);
  EXPECT_EQ(weights.size(), 1U);
}

TEST(MinimumTime, ContradictsOtherLengths) {
  for (const char* other : {"--num_batches=3", "--num_epochs=1"}) {
    const Finished run = run_program(flags_with({"--device=cpu", "--min_time=1", other}));
    EXPECT_EQ(run.status, 1) << other;
    EXPECT_THAT(run.err, HasSubstr("--min_time says when to stop"));
  }
}

}  // namespace
}  // namespace cnn::tests
