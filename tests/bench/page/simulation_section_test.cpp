#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <string>

#include "bench/page/page.h"
#include "bench/page/run_sections.h"
#include "tests/bench/compare/runs.h"

namespace cnn::page {
namespace {

using compare::result_of;
using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

// Returns the result of a run with --simulate.
Json simulated_result() {
  Json json = result_of({});
  json["config"]["simulate"] = "h200";
  json["plan"]["arena_bytes"] = 8LL << 30;
  json["plan"]["lms"] = nullptr;
  json["summary"] = nullptr;
  json["memory"] = {{"arena_peak_bytes", nullptr}};
  const Json conv{
      {"op", "conv<1>"}, {"nodes", 52}, {"seconds", 0.015}, {"bytes", 2.5e9}, {"flops", 3e12}};
  const Json relu{
      {"op", "relu"}, {"nodes", 49}, {"seconds", 0.005}, {"bytes", 1e9}, {"flops", 0.0}};
  json["simulation"] = {{"machine", "H<200>"},
                        {"source", "measured on an <H200>"},
                        {"flops_per_second", 7.9e14},
                        {"bytes_per_second", 4.3e12},
                        {"efficiency", {{"products", 0.78}, {"bytes", 1.0}}},
                        {"step_seconds", 0.0204},
                        {"images_per_sec", 12547.368},
                        {"roofline_images_per_sec", 13954.52},
                        {"arithmetic_images_per_sec", 34480.01},
                        {"flops_per_image", 2.291e10},
                        {"bytes_per_image", 2.95e8},
                        {"memory_limit", 140LL << 30},
                        {"largest_batch", 2674},
                        {"by_op", {conv, relu}}};
  return json;
}

std::string simulation_of_one(const Json& json) {
  const ShownRun runs[] = {{"run", "a", &json}};
  return simulation_section(runs);
}

TEST(SimulationSection, IsEmptyWithoutASimulation) {
  EXPECT_EQ(simulation_of_one({}), "");
  EXPECT_EQ(simulation_of_one(result_of({0.1})), "");
}

TEST(SimulationSection, HasTheOperationsWithTheirShares) {
  const std::string text = simulation_of_one(simulated_result());
  EXPECT_THAT(text, HasSubstr("<tr><td class=\"name\">conv&lt;1&gt;</td><td>52</td><td>15.000</td>"
                              "<td>75.0</td><td>2.50</td><td>3000.0</td></tr>"));
  EXPECT_THAT(text, Not(HasSubstr("number of ranks")));
}

TEST(SimulationSection, HasTheRanksIfThereAreAny) {
  Json json = simulated_result();
  json["simulation"]["ranks"] = {{{"ranks", 8},
                                  {"hosts", 2},
                                  {"images_per_sec", 96706.68},
                                  {"step_seconds", 0.0211774},
                                  {"efficiency", 0.9634},
                                  {"exchange_seconds", 0.00717},
                                  {"exposed_seconds", 0.001},
                                  {"slowdown_seconds", 0.0004},
                                  {"straggler_seconds", 0.0005},
                                  {"efficiency_without_overlap", 0.7293}}};
  EXPECT_THAT(simulation_of_one(json),
              HasSubstr("<tr><td>8</td><td>2</td><td>96706.7</td><td>21.177</td><td>96.34</td>"
                        "<td>7.170</td><td>1.000</td><td>0.400</td><td>0.500</td><td>72.93</td>"));
}

TEST(SimulationSection, DescribesTheMachine) {
  EXPECT_THAT(simulation_of_one(simulated_result()),
              AllOf(HasSubstr("790.0 TFLOP/s"), HasSubstr("4.3 TB/s"), HasSubstr("140.0 GiB"),
                    HasSubstr("22.91 GFLOP"), HasSubstr("0.295 GB"), HasSubstr("78.0 %"),
                    HasSubstr("measured on an &lt;H200&gt;")));
}

TEST(SimulationSection, IsOnThePageThatNamesTheSimulatedMachine) {
  const std::string page = run_page(simulated_result().dump());
  EXPECT_THAT(page, HasSubstr("<h1>resnet20 on H&lt;200&gt;, simulated: a prediction, not a "
                              "measurement</h1>"));
  EXPECT_THAT(page, AllOf(HasSubstr("<b>12547.4</b>predicted images/sec</div>"),
                          HasSubstr("<b>20.400 ms</b>predicted step</div>"),
                          HasSubstr("<b>13954.5</b>images/sec at most, with each operand moved"),
                          HasSubstr("<b>34480.0</b>images/sec at most, by arithmetic alone"),
                          HasSubstr("<b>2674</b>largest --batch_size that fits</div>")));
  EXPECT_THAT(page, AllOf(HasSubstr("<b>8.0 GiB of 140.0 GiB</b>planned arena"),
                          HasSubstr("Predicted operations of a step"),
                          HasSubstr("<small>of the host, which is not the simulated machine")));
}

TEST(SimulationSection, SaysOnThePageThatTheLargestBatchIsWithoutLms) {
  Json json = simulated_result();
  json["plan"]["lms"] = {{"necessary", true}};
  EXPECT_THAT(run_page(json.dump()),
              HasSubstr("<b>2674</b>largest --batch_size that fits without --lms</div>"));
}

TEST(SimulationSection, NamesTheFlagOfTheBatchOfAnEvaluation) {
  Json json = simulated_result();
  json["config"]["eval_batch_size"] = 4;
  EXPECT_THAT(run_page(json.dump()), HasSubstr("largest --batch_size that fits"));
  json["mode"] = "evaluation";
  EXPECT_THAT(run_page(json.dump()),
              HasSubstr("<b>2674</b>largest --eval_batch_size that fits</div>"));
  json["config"]["eval_batch_size"] = 0;
  EXPECT_THAT(run_page(json.dump()), HasSubstr("largest --batch_size that fits"));
}

TEST(SimulationSection, LeavesTheTitleOfASimulationThatFailed) {
  Json json = simulated_result();
  json.erase("simulation");
  json["error"] = "does not fit";
  EXPECT_THAT(run_page(json.dump()), HasSubstr("<h1>resnet20 on h200, simulated: a prediction"));
}

}  // namespace
}  // namespace cnn::page
