#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <string>

#include "bench/page/page.h"
#include "bench/page/run_sections.h"
#include "tests/bench/compare/runs.h"

namespace cnn::page {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

// Returns an item of the result's section "evaluation".
Json evaluation_at(int global_step, double top_1) {
  return {
      {"global_step", global_step}, {"examples", 12},           {"top_1", top_1}, {"top_5", 0.5},
      {"base_loss", 2.25},          {"images_per_sec", 426.125}};
}

std::string evaluations_of_one(const Json& json) {
  const ShownRun runs[] = {{"<run>", "a", &json}};
  return evaluation_section(runs);
}

TEST(EvaluationSection, IsEmptyWithoutEvaluations) {
  EXPECT_EQ(evaluations_of_one({}), "");
  EXPECT_EQ(evaluations_of_one({{"evaluation", Json::array()}}), "");
}

TEST(EvaluationSection, HasARowForEachEvaluation) {
  const std::string table =
      evaluations_of_one({{"evaluation", {evaluation_at(20, 0.125), evaluation_at(30, 1.0 / 12)}}});
  EXPECT_THAT(table,
              HasSubstr("<tr><td>20</td><td>12</td><td>0.1250</td><td>0.5000</td><td>2.2500</td>"
                        "<td>426.12</td></tr>\n<tr><td>30</td><td>12</td><td>0.0833</td>"));
  EXPECT_THAT(table, HasSubstr("Evaluations, &lt;run&gt;"));
}

TEST(EvaluationSection, MarksALossThatIsNotFinite) {
  Json evaluation = evaluation_at(30, 0.0);
  evaluation["base_loss"] = nullptr;
  EXPECT_THAT(evaluations_of_one({{"evaluation", {evaluation}}}),
              HasSubstr("<td class=\"regression\">not finite</td>"));
}

TEST(EvaluationSection, IsOnThePageWithTilesOfTheLastEvaluation) {
  const Json json{{"mode", "evaluation"},
                  {"summary", nullptr},
                  {"evaluation", {evaluation_at(20, 0.125), evaluation_at(30, 0.75)}}};
  const std::string page = run_page(json.dump());
  EXPECT_THAT(page, HasSubstr("Evaluations, run"));
  EXPECT_THAT(page, AllOf(HasSubstr("<b>0.7500</b>accuracy @ 1</div>"),
                          HasSubstr("<b>0.5000</b>accuracy @ 5</div>"),
                          HasSubstr("<b>2.2500</b>base loss of the evaluation</div>"),
                          HasSubstr("<b>426.12</b>images/sec of the evaluation</div>")));
}

TEST(EvaluationSection, SaysOnThePageThatALossWasNotFinite) {
  Json evaluation = evaluation_at(30, 0.0);
  evaluation["base_loss"] = nullptr;
  evaluation["non_finite"] = "conv<7>";
  EXPECT_THAT(run_page(Json{{"evaluation", {evaluation}}}.dump()),
              HasSubstr("<p class=\"regression\">The loss of the evaluation at global step 30 was "
                        "not finite; the first tensor that was not finite: conv&lt;7&gt;</p>"));
}

TEST(EvaluationSection, TakesNoOtherFormOfTheSectionForAnEvaluation) {
  const Json json{{"evaluation", {{"top_1", 0.5}}}};
  EXPECT_EQ(evaluations_of_one(json), "");
  EXPECT_THAT(run_page(json.dump()), Not(HasSubstr("class=\"regression\"")));
}

TEST(EvaluationSection, SaysOnThePageThatNothingWasEvaluated) {
  Json json{{"mode", "evaluation"}, {"evaluation", Json::array()}};
  EXPECT_THAT(run_page(json.dump()),
              HasSubstr("<p class=\"regression\">Nothing was evaluated</p>"));
  json["simulation"] = {{"machine", "H200"}};
  EXPECT_THAT(run_page(json.dump()), Not(HasSubstr("Nothing was evaluated")));
}

}  // namespace
}  // namespace cnn::page
