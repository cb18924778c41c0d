#include "bench/ranks/simulate_ranks.h"

#include <cmath>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <string>

#include "tests/support/error_of.h"
#include "tests/support/swapping_step.h"

namespace cnn::bench {
namespace {

RanksPrediction prediction_of(int ranks) {
  return {
      .ranks = ranks, .overlapped_seconds = 0.102, .alone_seconds = 0.1, .exchange_seconds = 0.022};
}

TEST(SimulatedRanks, WaitForTheSlowestAndComputeMoreSlowlyBesideTheExchange) {
  RanksPrediction found = prediction_of(1024);
  add_assumed(found, {.jitter = 0.01, .slowdown = 0.05});
  EXPECT_NEAR(found.exposed_seconds(), 0.002, 1e-12);
  EXPECT_NEAR(found.slowdown_seconds, 0.05 * 0.020, 1e-12);
  EXPECT_NEAR(found.straggler_seconds, 0.001 * std::sqrt(2 * std::log(1024.0)), 1e-12);
  EXPECT_NEAR(found.step_seconds(), 0.103 + found.straggler_seconds, 1e-12);
  EXPECT_LT(found.efficiency(), 0.95);
  add_assumed(found, {});
  EXPECT_NEAR(found.efficiency(), 0.1 / 0.102, 1e-12);
  RanksPrediction alone{.alone_seconds = 0.1};
  add_assumed(alone, {.jitter = 0.01, .slowdown = 0.05});
  EXPECT_EQ(alone.straggler_seconds, 0);
}

TEST(SimulatedRanks, NeverPrintANegativeZero) {
  RanksPrediction found = prediction_of(8);
  found.overlapped_seconds = found.alone_seconds * (1 - 1e-15);
  EXPECT_EQ(found.exposed_seconds(), 0);
  EXPECT_FALSE(std::signbit(found.exposed_seconds()));
  testing::internal::CaptureStderr();
  Console console;
  Json result;
  report_ranks({&found, 1}, 32, console, result);
  const std::string said = testing::internal::GetCapturedStderr();
  EXPECT_NE(said.find(" 0.000 ms of it exposed (100.0 % hidden)"), std::string::npos) << said;
  EXPECT_EQ(said.find("-0.0"), std::string::npos) << said;
  EXPECT_EQ(result.at(0).at("source"), "derived");
}

TEST(SimulatedRanks, SayWhatTheyAssume) {
  EXPECT_EQ(assumptions_text({.jitter = 0.01, .slowdown = 0.05}),
            "assumed: the step of a rank has a standard deviation of 1 % "
            "(--simulate_ranks_jitter), and computing takes 5 % longer while an exchange runs "
            "beside it (--simulate_ranks_slowdown)");
}

TEST(SimulatedRanks, TakeWhatTheFlagsAssume) {
  CommFlags flags;
  flags.simulate_ranks_jitter = 0.25;
  flags.simulate_ranks_slowdown = 0.5;
  EXPECT_EQ(assumptions_of(flags).jitter, 0.25);
  EXPECT_EQ(assumptions_of(flags).slowdown, 0.5);
}

Config simulated_ranks(std::vector<std::int64_t> ranks) {
  Config config;
  config.comm.simulate_ranks = std::move(ranks);
  config.comm.simulate_ranks_per_host = 8;
  config.comm.simulate_ranks_jitter = 0;
  return config;
}

TEST(SimulatedRanks, FillTheirHosts) {
  const StepPlan plan = tests::swapping_plan();
  const auto hosts = [&](std::int64_t ranks) {
    return simulated_exchange(simulated_ranks({}), ranks, plan).settings.topology.host_of;
  };
  EXPECT_EQ(hosts(3), (std::vector{0, 0, 0}));
  EXPECT_EQ(hosts(8).back(), 0);
  EXPECT_EQ(hosts(16).back(), 1);
  EXPECT_EQ(tests::error_of([&] { hosts(12); }),
            "--simulate_ranks=12: hosts of --simulate_ranks_per_host=8 would not be full");
}

TEST(SimulatedRanks, GoByTheLinksOfTheFlags) {
  Config config = simulated_ranks({});
  config.comm.host_gbps = 3;
  EXPECT_EQ(simulated_exchange(config, 16, tests::swapping_plan()).settings.links.host, 3e9);
}

TEST(SimulatedRanks, AreAsFastAsOneWithoutAnExchange) {
  const StepPlan plan = tests::swapping_plan();
  const auto found = predict_ranks(plan, {.seconds = {1, 2, 3, 4}}, simulated_ranks({1, 16}));
  ASSERT_EQ(found.size(), 2U);
  EXPECT_EQ(found[1].ranks, 16);
  EXPECT_EQ(found[1].hosts, 2);
  EXPECT_EQ(found[1].alone_seconds, 10);
  EXPECT_EQ(found[1].exchange_seconds, 0);
  EXPECT_EQ(found[1].efficiency(), 1);
  EXPECT_EQ(found[1].largest_by, "");
}

TEST(SimulatedRanks, AreReportedWithTheSpeedOfAllOfThem) {
  RanksPrediction found = prediction_of(4);
  found.hosts = 2;
  found.without_overlap.seconds = 0.2;
  testing::internal::CaptureStderr();
  Console console;
  Json result;
  report_ranks({&found, 1}, 51, console, result);
  EXPECT_THAT(testing::internal::GetCapturedStderr(),
              testing::StartsWith("simulate: 4 ranks on 2 hosts: 2000.0 images/sec, efficiency "
                                  "98.04 %; exchange 22.000 ms, 2.000 ms of it exposed (90.9 % "
                                  "hidden), largest bucket by none;"));
  EXPECT_NEAR(result[0]["images_per_sec"], 2000, 1e-6);
  EXPECT_EQ(result[0]["efficiency_without_overlap"], 0.5);
}

}  // namespace
}  // namespace cnn::bench
