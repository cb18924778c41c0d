#include "bench/page/page.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "runtime/error.h"
#include "tests/bench/compare/runs.h"

namespace cnn::page {
namespace {

using compare::Json;
using compare::result_of;
using compare::run_of;
using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

// Returns the result of a run with --lms and --html_report.
Json rich_result() {
  Json json = result_of({0.10, 0.11, 0.10, 0.25, 0.10, 0.10});
  json["steps"][3]["disturbed"] = true;
  json["steps"][3]["disturbance"] = {{"causes", {"other processes"}}};
  for (Json& step : json["steps"]) {
    step["total_loss"] = 7.5;
  }
  json["warm_up_losses"] = {8.0, nullptr};
  json["summary"] = {{"images_per_sec", 160.0},
                     {"uncertainty", 1.5},
                     {"median_step_seconds", 0.1},
                     {"percent_of_roofline", 66.5},
                     {"disturbed_steps", 1}};
  json["plan"]["lower_bound_bytes"] = 900;
  json["plan"]["arena_bytes"] = 1000;
  json["plan"]["lms"] = {
      {"necessary", true},       {"policy", "planned"},          {"need_bytes", 3 << 20},
      {"budget_bytes", 1 << 20}, {"swapped_out_bytes", 5 << 20}, {"swapped_in_bytes", 6 << 20},
      {"recomputed_nodes", 3}};
  const Json span{{"name", "conv <1>"},
                  {"start", 0.01},
                  {"end", 0.02},
                  {"planned_start", 0.0},
                  {"planned_end", 0.015}};
  json["profile"] = {
      {"steps", 10},
      {"ops",
       {{{"op", "conv"},
         {"nodes", 20},
         {"seconds", 0.08},
         {"flops", 1e9},
         {"bytes", 1e7},
         {"roofline_seconds", 0.06}}}},
      {"lanes", {{{"lane", "compute"}, {"spans", {span, span}}}}},
      {"memory",
       {{"arena_bytes", 2 << 20},
        {"peak_step", 1},
        {"steps", {{{"start", 0.0}, {"bytes", 1 << 20}}, {{"start", 0.02}, {"bytes", 2 << 20}}}},
        {"biggest", {{{"tensor", "v/cg/conv0"}, {"bytes", 1 << 20}}}},
        {"moved", {{{"tensor", "v/cg/conv7"}, {"bytes", 1 << 19}}}}}}};
  return json;
}

TEST(RunPage, ShowsEverythingThatTheResultTells) {
  const std::string page = run_page(rich_result().dump());
  EXPECT_THAT(page,
              AllOf(HasSubstr("resnet20 on Some CPU"), HasSubstr("160.00 ± 1.50"),
                    HasSubstr("Step times"), HasSubstr("Total loss"), HasSubstr("Lanes of a step"),
                    HasSubstr("compute, plan"), HasSubstr("Memory over the step")));
  EXPECT_THAT(page, AllOf(HasSubstr("Biggest tensors at the peak"), HasSubstr("v/cg/conv0"),
                          HasSubstr("Moved to the host"), HasSubstr("v/cg/conv7"),
                          HasSubstr("Policy planned moves 5.0 MiB out"),
                          HasSubstr("How near the bounds"), HasSubstr("Operations of a step")));
  EXPECT_THAT(page, HasSubstr("step 4: 250.000 ms, disturbed: other processes"));
  EXPECT_THAT(page, AllOf(HasSubstr("conv &lt;1&gt;"), Not(HasSubstr("conv <1>"))));
}

TEST(RunPage, ShowsTheLanesOfAllRanksOneBelowTheOther) {
  Json json = rich_result();
  const Json span{{"name", "all_reduce"}, {"start", 0.01}, {"end", 0.02}};
  const Json lanes = {{{"lane", "compute"}, {"spans", {span}}},
                      {{"lane", "communicate"}, {"spans", {span, span}}}};
  json["profile"]["ranks"] = {{{"rank", 0}, {"lanes", lanes}}, {{"rank", 1}, {"lanes", lanes}}};
  const std::string page = run_page(json.dump());
  EXPECT_THAT(page, AllOf(HasSubstr("rank 0, compute"), HasSubstr("rank 1, communicate"),
                          Not(HasSubstr("plan beside measured"))));
}

TEST(RunPage, SaysInItsHeadingWhatWasRunAndWhen) {
  Json json = rich_result();
  json["mode"] = "training";
  json["batch"] = {{"global", 16}, {"per_device", 8}};
  json["started"] = "2026-11-23T12:22:31.396989Z";
  EXPECT_THAT(run_page(json.dump()), HasSubstr("<p>training, batch 16 (8 per device), precision "
                                               "f32, 2026-11-23 12:22:31 UTC</p>"));
  EXPECT_THAT(run_page(rich_result().dump()), HasSubstr("<p>batch 16, precision f32, "))
      << "in an older file, the speed of a step gives the batch";
}

TEST(RunPage, SaysHowManyOfTheStepsWereDisturbed) {
  EXPECT_THAT(run_page(rich_result().dump()), HasSubstr("<b>1 of 6</b>steps disturbed"));
}

TEST(RunPage, ExplainsTheLanesThatItShows) {
  EXPECT_THAT(run_page(rich_result().dump()),
              AllOf(HasSubstr("</span>measured"), HasSubstr("</span>as planned"),
                    HasSubstr("; compute: operations"), Not(HasSubstr("; communicate:"))));
}

TEST(RunPage, ShowsSizesInUnitsThatPeopleReadAndNoEmptyRows) {
  Json json = rich_result();
  json["machine"]["memory_bytes"] = 25276502016;
  json["profile"]["memory"]["biggest"].push_back({{"tensor", "tiny"}, {"bytes", 64}});
  const std::string page = run_page(json.dump());
  EXPECT_THAT(page, AllOf(HasSubstr("<td class=\"name\">23.5 GiB</td>"),
                          Not(HasSubstr("25276502016")), HasSubstr("<td>64 B</td>")));
  EXPECT_THAT(page, AllOf(Not(HasSubstr("<td class=\"name\">gpu</td>")),
                          Not(HasSubstr("<td class=\"name\"></td></tr>"))));
}

TEST(RunPage, HasOnePeakOfTheArena) {
  Json json = rich_result();
  json["plan"]["variable_bytes"] = 1 << 20;
  json["plan"]["arena_bytes"] = 3 << 20;
  json["memory"] = {{"arena_peak_bytes", 3 << 20}};
  const std::string page = run_page(json.dump());
  EXPECT_THAT(page, AllOf(HasSubstr("<b>3.0 MiB</b>measured peak of the arena"),
                          HasSubstr(">arena 3.0 MiB</text>"), HasSubstr("variables 1.0 MiB")));
  json["memory"]["arena_peak_bytes"] = (5 << 20) / 2;
  EXPECT_THAT(run_page(json.dump()), AllOf(HasSubstr("<b>2.5 MiB</b>measured peak of the arena"),
                                           HasSubstr("arena 3.0 MiB, measured peak 2.5 MiB")));
}

TEST(RunPage, ShowsAStepFarAboveTheOthersByAnArrow) {
  Json json = rich_result();
  json["steps"][3]["seconds"] = 60.0;
  const std::string page = run_page(json.dump());
  EXPECT_THAT(page,
              testing::ContainsRegex("class=\"dot arrow a disturbed\"[^>]*><title>run step 4: "
                                     "60000.000 ms"));
  EXPECT_THAT(page, Not(HasSubstr(">60k</text>"))) << "the axis ends above the usual values";
}

TEST(RunPage, LoadsNothingAndRunsNothing) {
  const std::string page = run_page(rich_result().dump());
  EXPECT_THAT(page,
              AllOf(Not(HasSubstr("http:")), Not(HasSubstr("https:")), Not(HasSubstr("<script")),
                    Not(HasSubstr("@import")), Not(HasSubstr("nan"))));
  EXPECT_THAT(page,
              AllOf(HasSubstr("prefers-color-scheme: dark"), HasSubstr("width=device-width")));
}

TEST(RunPage, LeavesOutWhatARunThatFailedNeverHad) {
  const std::string page =
      run_page(R"({"program": "cnn_benchmarks", "error": "no <room>", "model": null})");
  EXPECT_THAT(page, AllOf(HasSubstr("no &lt;room&gt;"), Not(HasSubstr("Step times")),
                          Not(HasSubstr("Lanes of a step"))));
  EXPECT_THROW(run_page("{"), Error);
}

TEST(ComparisonPage, ShowsBothSidesOfEachConfiguration) {
  std::vector<compare::Run> base, candidate;
  for (int i = 0; i < 3; ++i) {
    base.push_back(run_of(rich_result()));
    Json slower = rich_result();
    slower["machine"]["libraries"]["oneDNN"] = "3.4.1";
    for (Json& step : slower["steps"]) {
      step["seconds"] = 1.5 * step["seconds"].get<double>() + 0.0001 * i;
      step["images_per_sec"] = 16 / step["seconds"].get<double>();
    }
    candidate.push_back(run_of(slower));
  }
  const auto configurations = compare::find_configurations(base, candidate, false);
  const std::string page = comparison_page(configurations, compare::judge(configurations, {}), {});
  EXPECT_THAT(
      page,
      AllOf(HasSubstr("Change of the step time"), HasSubstr("regression: a step takes"),
            HasSubstr("Speed of each run"), HasSubstr("base median"), HasSubstr("new median"),
            HasSubstr("<tr class=\"unlike\">"), HasSubstr("oneDNN: 3.2.0 before, 3.4.1 now")));
}

// There are twenty time slices of one step, and the new program is slower by a tenth.
TEST(ComparisonPage, ShowsPairsByTheClockThatTheyShare) {
  std::vector<compare::Run> base, candidate;
  for (int pair = 0; pair < 3; ++pair) {
    Json one = result_of(std::vector<double>(10, 0.1));
    Json other = result_of(std::vector<double>(10, 0.11 + 0.0001 * pair));
    one["config"]["take_turns"] = other["config"]["take_turns"] = "turns." + std::to_string(pair);
    for (std::size_t i = 0; i < 10; ++i) {
      one["steps"][i]["ended"] = 100 + 2 * i;
      other["steps"][i]["ended"] = 101 + 2 * i;
    }
    base.push_back(run_of(one));
    candidate.insert(candidate.begin(),
                     run_of(other));  // pairs are matched by name, not by position
  }
  const auto configurations = compare::find_configurations(base, candidate, false);
  const std::string page = comparison_page(configurations, compare::judge(configurations, {}), {});
  EXPECT_THAT(
      page, AllOf(HasSubstr("Change of the step time in each pair"), HasSubstr("pair 1: +10.00 %"),
                  HasSubstr("pair 3: +10.20 %"), HasSubstr("mean +10.10 %")));
  EXPECT_THAT(page, AllOf(HasSubstr("s, both in turns"), HasSubstr("new step 1: 110.000 ms")));
}

TEST(ComparisonPage, DrawsBoundsOfNextToNothingAndSlowdownsOfAnySize) {
  const auto page_of = [](std::vector<double> base, std::vector<double> candidate) {
    std::vector<compare::Run> sides[2];
    for (std::size_t i = 0; i < base.size(); ++i) {
      sides[0].push_back(run_of(result_of({base[i], base[i]})));
      sides[1].push_back(run_of(result_of({candidate[i], candidate[i]})));
    }
    const compare::Settings settings{.confidence = 0.999};
    const auto configurations = compare::find_configurations(sides[0], sides[1], false);
    return comparison_page(configurations, compare::judge(configurations, settings), settings);
  };
  const std::string noise = page_of({0.1, 0.4}, {0.1, 0.9});
  EXPECT_THAT(noise, AllOf(HasSubstr("cannot tell"), Not(HasSubstr("e+")),
                           HasSubstr("class=\"dot arrow b\""), HasSubstr("to over +999 %")));
  // A slowdown to three times the time has bounds close to the estimate, so the axis must reach
  // there.
  const std::string slow = page_of({0.1, 0.1001, 0.0999}, {0.3, 0.3003, 0.2997});
  EXPECT_THAT(slow, AllOf(HasSubstr(">200</text>"), HasSubstr("resnet20, 16 images: +200.0"),
                          Not(HasSubstr("class=\"dot arrow"))));
}

TEST(ComparisonPage, NeedsNoMoreThanOneRunASide) {
  const auto configurations = compare::find_configurations({run_of(result_of({0.1, 0.2}))},
                                                           {run_of(result_of({0.1, 0.2}))}, false);
  EXPECT_THAT(comparison_page(configurations, compare::judge(configurations, {}), {}),
              AllOf(HasSubstr("cannot tell from a single run"), Not(HasSubstr("inf"))));
}

}  // namespace
}  // namespace cnn::page
