#include "bench/page/heading.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "bench/page/page.h"
#include "tests/bench/compare/runs.h"

namespace cnn::page {
namespace {

using compare::Json;
using compare::result_of;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

TEST(Heading, NamesModelAndDevice) {
  Json json = result_of({0.1});
  EXPECT_EQ(title_of(json), "resnet20 on Some CPU");
  json["machine"]["gpu"] = {{"name", "Some GPU"}};
  EXPECT_EQ(title_of(json), "resnet20 on Some GPU");
}

TEST(Heading, HasNoProblemsOfARunThatEndedWell) {
  EXPECT_THAT(problems_of(result_of({0.1})), IsEmpty());
}

TEST(Heading, SaysWhatInterruptedTheRunAndAfterHowManySteps) {
  Json json = result_of({0.1, 0.1});
  json["interrupted_by"] = "SIGTERM";
  EXPECT_THAT(problems_of(json), ElementsAre("Interrupted (SIGTERM) after 2 timed steps"));
  json["steps"] = Json::array({json["steps"][0]});
  EXPECT_THAT(problems_of(json), ElementsAre("Interrupted (SIGTERM) after 1 timed step"));
  json["steps"] = Json::array();
  EXPECT_THAT(problems_of(json), ElementsAre("Interrupted (SIGTERM)"));
}

TEST(Heading, SaysSinceWhenTheLossIsNotFinite) {
  Json json = result_of({0.1});
  json["diverged"] = {{"step", 3}, {"global_step", 13}, {"loss", "nan"}, {"tensor", "conv#7"}};
  EXPECT_THAT(problems_of(json),
              ElementsAre("The training diverged: the loss is nan since step 3 (global step 13); "
                          "the first tensor that was not finite: conv#7"));
  json["diverged"] = {{"step", nullptr}, {"global_step", 2}, {"loss", "inf"}, {"tensor", nullptr}};
  EXPECT_THAT(problems_of(json), ElementsAre("The training diverged: the loss is inf since the "
                                             "warm-up (global step 2)"));
}

TEST(Heading, ShowsAllProblemsProminentlyOnThePage) {
  Json json = result_of({0.1});
  json["error"] = "no <room>";
  json["interrupted_by"] = "SIG<INT>";
  json["diverged"] = {{"step", 1}, {"global_step", 11}, {"loss", "nan"}, {"tensor", "a<b"}};
  const std::string page = run_page(json.dump());
  EXPECT_THAT(page, HasSubstr("<p class=\"regression\">no &lt;room&gt;</p>"));
  EXPECT_THAT(page, HasSubstr("<p class=\"regression\">Interrupted (SIG&lt;INT&gt;) after 1 "));
  EXPECT_THAT(page, HasSubstr("<p class=\"regression\">The training diverged: the loss is nan"));
  EXPECT_THAT(page, HasSubstr("not finite: a&lt;b</p>"));
}

}  // namespace
}  // namespace cnn::page
