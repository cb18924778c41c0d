#include "bench/compare/tables.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/bench/compare/runs.h"

namespace cnn::compare {
namespace {

using testing::AllOf;
using testing::HasSubstr;

std::vector<Finding> findings_of(std::size_t runs, double slower) {
  SyntheticRuns draws(1, {});
  return judge({{.label = "resnet20, 16 images",
                 .base = draws.draw(runs, 0.1),
                 .candidate = draws.draw(runs, 0.1 * (1 + slower))}},
               {});
}

TEST(Tables, ShowARegressionInEveryForm) {
  const std::vector<Finding> findings = findings_of(5, 0.1);
  EXPECT_THAT(
      terminal_text(findings, {}),
      AllOf(HasSubstr("resnet20, 16 images"), HasSubstr("5 + 5"), HasSubstr("  regression\n"),
            HasSubstr("regression: a step takes"), HasSubstr("99 % bounds")));
  EXPECT_THAT(markdown_text(findings, {}),
              AllOf(HasSubstr("| **regression** |\n"),
                    HasSubstr("|---|---:|---:|---:|---:|---:|---:|---|\n")));
  const Json json = Json::parse(json_text(findings, {}));
  EXPECT_EQ(json["exit_code"], 1);
  EXPECT_EQ(json["configurations"][0]["verdict"], "regression");
  EXPECT_NEAR(json["configurations"][0]["slower_percent"], 10, 2);
  EXPECT_EQ(json["configurations"][0]["base"]["runs"].size(), 5U);
}

TEST(Tables, SayWhatASingleRunLacks) {
  const std::vector<Finding> findings = findings_of(1, 0);
  EXPECT_THAT(terminal_text(findings, {}),
              AllOf(HasSubstr("unknown"), HasSubstr("about 4 more runs a side")));
  const Json json = Json::parse(json_text(findings, {}));
  EXPECT_TRUE(json["configurations"][0]["upper_percent"].is_null());
  EXPECT_EQ(json["configurations"][0]["more_runs"], 4);
}

TEST(Tables, HaveNoAstronomicBounds) {
  SyntheticRuns draws(1, {.drift = 0.3});
  const std::vector<Finding> findings =
      judge({{.label = "noise", .base = draws.draw(2, 0.1), .candidate = draws.draw(2, 0.1)}},
            {.confidence = 0.999});
  ASSERT_GT(percent(findings.front().difference.upper(0.999)), 1e6);
  EXPECT_THAT(terminal_text(findings, {.confidence = 0.999}), HasSubstr(" to over +999 %"));
}

TEST(Tables, SayHowMuchCouldHideWhereThereIsNoRegression) {
  EXPECT_THAT(sentence(findings_of(5, 0).front(), {}),
              HasSubstr("no regression: with 99 % confidence a step takes at most"));
}

TEST(Tables, EscapeBarsInCellsOfMarkdown) {
  std::vector<Finding> findings = findings_of(5, 0);
  findings.front().label = "a|b";
  EXPECT_THAT(markdown_text(findings, {}), HasSubstr("\n| a\\|b | 5 + 5 |"));
}

}  // namespace
}  // namespace cnn::compare
