#include "allreduce/predict_step.h"

#include <cmath>
#include <gtest/gtest.h>

#include "allreduce/algorithm.h"
#include "allreduce/cost.h"

namespace cnn::allreduce {
namespace {

// The exchange's seconds come from the simulated action lists of an all-reduce of ResNet-50's
// gradients.
constexpr double resnet50_bytes = 102.2e6;
double resnet50_exchange(const char* by, const Topology& topology, const Options& options,
                         double host_bytes_per_second) {
  const auto elements = static_cast<std::size_t>(resnet50_bytes / sizeof(float));
  return simulate(plans_of_all(find(by), topology, elements, options), topology,
                  {.latency = 0, .host = host_bytes_per_second});
}

// Predicts a step that exchanges all gradients in one call after the last of them.
StepTime without_overlap(double compute, double exchange) {
  return predict_step({.compute = compute,
                       .backward_end = compute,
                       .buckets = {{.ready = compute, .seconds = exchange}}});
}

// Dell's published servers: one A100 each, 1024 images per step, and 98.8 % of 100 Gbit/s.
constexpr double dell_batch = 1024, dell_alone = 2757.21, dell_link = 12.35e9;
double dell_speed(int nodes, double link) {
  const double exchange = resnet50_exchange("ring", ranks_on_hosts(nodes, 1), {}, link);
  return nodes * dell_batch / without_overlap(dell_batch / dell_alone, exchange).seconds;
}

TEST(PredictStep, GivesDellsTable) {
  EXPECT_NEAR(dell_speed(2, dell_link) / 5391.75, 1, 1e-3);
  EXPECT_NEAR(dell_speed(4, dell_link) / 10675.09, 1, 1e-3);
  EXPECT_NEAR(dell_speed(8, dell_link) / 21229, 1, 1e-3);
  EXPECT_NEAR(dell_speed(16, dell_link) / 42345, 1, 1e-3);
  // Dell reports 6 and 11.6 % for a quarter of the link's speed.
  const double two = dell_speed(2, dell_link) / dell_speed(2, dell_link / 4);
  const double four = dell_speed(4, dell_link) / dell_speed(4, dell_link / 4);
  EXPECT_NEAR(two, 1.067, 0.004);
  EXPECT_NEAR(four, 1.099, 0.005);
}

// With overlap, the backward pass emits buckets of 8 MB during two thirds of the step and one of 1
// MB at its end.
TEST(PredictStep, GivesWhatOverlapWouldHaveGiven) {
  const double compute = dell_batch / dell_alone;
  StepModel model{.compute = compute, .backward_end = compute, .ranks = 4};
  constexpr double bucket = 8e6, tail = 1e6, share = 2.0 * 3 / 4;
  for (double done = bucket; done < resnet50_bytes - tail; done += bucket) {
    model.buckets.push_back(
        {compute * (1 + 2 * done / resnet50_bytes) / 3, share * bucket / dell_link});
  }
  model.buckets.push_back({compute, share * tail / dell_link});
  const StepTime time = predict_step(model);
  EXPECT_GE(4 * dell_batch / time.seconds, 11020);
  EXPECT_LT(time.exposed, 0.3e-3);
}

// IBM published 64 servers of 4 P100: 8192 images per step in 213 ms at 95 % efficiency.
TEST(PredictStep, GivesTheEfficiencyOfDdl) {
  const double step = 1281167.0 * 90 / 3000, seconds = 8192 / step;  // 90 epochs in 50 minutes
  EXPECT_NEAR(step, 38435, 1);
  const Topology topology = ranks_on_hosts(64, 4);
  const Links rail{.latency = 0, .rank = 1e12, .host = 18.9e9};
  const auto efficiency = [&](double exchange) {
    const double compute = seconds - bound(topology, resnet50_bytes, rail);
    return compute / without_overlap(compute, exchange).seconds;
  };
  EXPECT_NEAR(efficiency(bound(topology, resnet50_bytes, rail)), 0.950, 0.001);
  const auto elements = static_cast<std::size_t>(resnet50_bytes / sizeof(float));
  const Options options{.dims = {4, 8, 8}, .chunks = 32, .window = 3};
  const double real =
      simulate(plans_of_all(find("grid_of_rings"), topology, elements, options), topology, rail);
  EXPECT_NEAR(efficiency(real), 0.950, 0.005);
  // The expected values are those of one and of two rails of 100 Gbit/s.
  EXPECT_NEAR(1 - bound(topology, resnet50_bytes, {.rank = 1e12, .host = 12.5e9}) / seconds, 0.926,
              0.002);
  EXPECT_NEAR(1 - bound(topology, resnet50_bytes, {.rank = 1e12, .host = 25e9}) / seconds, 0.962,
              0.002);
}

TEST(PredictStep, WaitsForTheBucketBeforeAndForTheSlowest) {
  const StepModel model{.compute = 10,
                        .backward_end = 9,
                        .buckets = {{4, 3}, {5, 3}, {9, 0.5}},
                        .pack = 0.25,
                        .jitter = 0.1,
                        .ranks = 64};
  const StepTime time = predict_step(model);
  EXPECT_EQ(time.communication, 6.5);
  EXPECT_EQ(time.exposed, 10.5 - 9 + 0.25);
  EXPECT_NEAR(time.straggler, 0.1 * std::sqrt(2 * std::log(64.0)), 1e-12);
  EXPECT_EQ(time.seconds, 10 + time.exposed + time.straggler);
  EXPECT_EQ(predict_step({.compute = 3, .backward_end = 3}).seconds, 3);
}

}  // namespace
}  // namespace cnn::allreduce
