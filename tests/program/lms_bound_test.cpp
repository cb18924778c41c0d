#include <cmath>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "tests/program/program.h"

namespace cnn::tests {
namespace {

using nlohmann::json;

constexpr int any_mib = 10'000;

// Plans with these flags within `mib` MiB. Returns the result's LMS section.
json planned_within(std::vector<std::string> words, int mib) {
  const TemporaryFolder folder;
  words.insert(words.end(), {"--lms", "--lms_simulate_only", "--lms_limit=" + std::to_string(mib),
                             "--result_json=" + (folder / "r.json")});
  const Finished run = run_program(words);
  EXPECT_EQ(run.status, 0) << run.err;
  return json::parse(read_file(folder / "r.json")).at("plan").at("lms");
}

void expect_true_bound(const json& lms) {
  ASSERT_TRUE(lms.at("necessary").get<bool>()) << lms.dump();
  ASSERT_TRUE(lms.at("lower_bound_seconds").is_number()) << "infinite: " << lms.dump();
  EXPECT_GT(lms.at("lower_bound_seconds").get<double>(), 0);
  EXPECT_LE(lms.at("lower_bound_seconds").get<double>(),
            lms.at("predicted_step_seconds").get<double>());
}

double mib_of(const json& lms, const char* bytes) {
  return lms.at(bytes).get<double>() / (1 << 20);
}

// Need and floor of a step depend on the library of the convolutions.
TEST(LmsBound, IsNotBeatenByPlansThatOnlyRecompute) {
  const std::vector<std::string> words{"--device=cpu",          "--model=resnet20",
                                       "--data_name=cifar10",   "--batch_size=32",
                                       "--num_intra_threads=1", "--measure_ceilings=false"};
  const double need = mib_of(planned_within(words, any_mib), "need_bytes");
  const double floor = mib_of(planned_within(words, static_cast<int>(need / 2)), "floor_bytes");
  for (const double share : {0.05, 0.2, 0.45, 0.75, 0.95}) {
    const int mib = static_cast<int>(std::ceil(floor + share * (need - floor)));
    SCOPED_TRACE(mib);
    expect_true_bound(planned_within(words, mib));
  }
}

// A recomputed pool recomputes its indices too, although they are not candidates themselves.
TEST(LmsBound, CountsWhatAReplayedPoolFreesBesideItsCandidates) {
  for (const int mib : {195, 210, 225, 240, 255, 270, 285}) {
    SCOPED_TRACE(mib);
    expect_true_bound(
        planned_within({"--simulate=p100-pcie3", "--model=googlenet", "--batch_size=16",
                        "--lms_incl_types=max_pool", "--lms_size_threshold=5000"},
                       mib));
  }
}

double gap_of(const json& lms) {
  return lms.at("predicted_step_seconds").get<double>() /
             lms.at("lower_bound_seconds").get<double>() -
         1;
}

// The largest map of mobilenet is recomputed from 1,366 MiB on, between two budgets of the series.
TEST(LmsBound, IsNearWhereALittleMoreMemorySavesMuch) {
  const json lms =
      planned_within({"--simulate=p100-pcie3", "--model=mobilenet", "--batch_size=128"}, 1380);
  expect_true_bound(lms);
  EXPECT_LT(gap_of(lms), 0.1) << "85 % without budgets in between";
}

// The map before a pool is recomputed before its gradient is there, since both do not fit beside
// what the map is made of.
TEST(LmsBound, IsNearWhereRecomputationMustComeEarly) {
  const json lms =
      planned_within({"--simulate=h200", "--model=inception3", "--batch_size=64"}, 1000);
  expect_true_bound(lms);
  EXPECT_LT(gap_of(lms), 0.2) << "96 % if the map is swapped";
}

}  // namespace
}  // namespace cnn::tests
