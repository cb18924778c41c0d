#include "bench/page/heading.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "bench/page/page.h"
#include "tests/bench/compare/runs.h"

namespace cnn::page {
namespace {

using compare::Json;
using compare::result_of;
using testing::AllOf;
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

// Returns the result of a search, which builds no model.
Json search_result() {
  Json json = result_of({});
  json["model"] = json["plan"] = json["mode"] = json["batch"] = nullptr;
  json["config"] = {{"model", "res<net>50"}, {"data_name", "imagenet"}, {"precision", "fp32"},
                    {"batch_size", 0},       {"simulate", nullptr},     {"eval", false}};
  json["started"] = "2026-11-23T12:22:31.396989Z";
  json["search"] = {{"flag", "batch_size"},
                    {"step", 1},
                    {"lms", false},
                    {"largest", 208},
                    {"limit_bytes", 300LL << 20},
                    {"bytes", 299LL << 20},
                    {"further_bytes", 301LL << 20},
                    {"seconds", 0.25}};
  return json;
}

TEST(Heading, NamesTheFlagAndTheModelOfASearch) {
  Json json = search_result();
  EXPECT_EQ(title_of(json), "Largest --batch_size of res<net>50 on Some CPU");
  EXPECT_EQ(heading_of(json),
            "search for training, precision fp32, data set imagenet, 2026-11-23 12:22:31 UTC");
  json["config"]["simulate"] = "h200";
  EXPECT_EQ(title_of(json), "Largest --batch_size of res<net>50 on h200, simulated");
  json["search"]["flag"] = "image_size";
  json["search"]["lms"] = true;
  json["config"]["batch_size"] = 4;
  EXPECT_THAT(heading_of(json), HasSubstr("search for training, --lms, batch 4 per device, "));
}

TEST(Heading, HasTheAnswerOfASearch) {
  Json json = search_result();
  EXPECT_EQ(search_answer(json),
            "--batch_size=208 takes 299.0 MiB (313524224 bytes); the limit is 300.0 MiB (314572800 "
            "bytes); 209 takes 301.0 MiB (315621376 bytes)");
  json["search"]["further_bytes"] = nullptr;
  EXPECT_THAT(search_answer(json), HasSubstr("; 209 cannot be had on this backend"));
  json["search"]["lms"] = true;
  json["search"]["step"] = 16;
  json["search"]["further_bytes"] = 1;
  EXPECT_THAT(search_answer(json), AllOf(HasSubstr("takes at least 299.0 MiB"),
                                         HasSubstr("; 224 has no plan that device and host")));
  json["search"]["largest"] = 0;
  json["search"]["bytes"] = json["search"]["further_bytes"] = nullptr;
  EXPECT_EQ(search_answer(json),
            "No --batch_size fits in the limit of 300.0 MiB (314572800 bytes)");
  EXPECT_EQ(search_answer(result_of({0.1})), "");
}

TEST(Heading, ShowsASearchOnThePage) {
  const std::string page = run_page(search_result().dump());
  EXPECT_THAT(page,
              AllOf(HasSubstr("<h1>Largest --batch_size of res&lt;net&gt;50 on Some CPU</h1>"),
                    HasSubstr("<p>--batch_size=208 takes 299.0 MiB (")));
  EXPECT_THAT(page, AllOf(HasSubstr("<b>208</b>largest --batch_size</div>"),
                          HasSubstr("<b>299.0 MiB</b>needed</div>"),
                          HasSubstr("<b>300.0 MiB</b>limit of memory</div>"),
                          HasSubstr("<b>301.0 MiB</b>needed by --batch_size=209</div>")));
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
