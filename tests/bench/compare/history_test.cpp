#include "bench/compare/history.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/bench/compare/runs.h"
#include "tests/support/error_of.h"

namespace cnn::compare {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

// Returns a run of a commit whose steps take this long.
Json history_result(double seconds, const std::string& commit, std::size_t number) {
  Json result = result_of({seconds * 0.999, seconds, seconds * 1.001});
  result["commit"] = commit;
  result["started"] = fmt::format("2026-01-01T00:00:{:02}Z", number);
  return result;
}

// Returns lines of runs that scatter a little. From run `slow_from` on, they are slower by the
// factor.
std::string history_lines(std::size_t runs, std::size_t slow_from, double factor) {
  std::string text;
  for (std::size_t i = 0; i < runs; ++i) {
    const double scatter = 1 + 0.002 * static_cast<double>(i * 7 % 5);
    const double seconds = 0.1 * scatter * (i < slow_from ? 1 : factor);
    text += history_line(run_of(history_result(seconds, fmt::format("c{}", i / 2), i)));
  }
  return text;
}

std::vector<Series> find_in(const std::string& text) {
  return find_history(parse_history("h.jsonl", text).runs, {}, false);
}

TEST(HistoryLine, KeepsWhatAComparisonNeeds) {
  const auto run = run_of(history_result(0.1, "abc", 1));
  const std::string line = history_line(run);
  EXPECT_EQ(std::ranges::count(line, '\n'), 1);
  const History history = parse_history("h", line);
  ASSERT_THAT(history.runs, SizeIs(1));
  EXPECT_EQ(history.runs[0].identity, run.identity);
  EXPECT_EQ(history.runs[0].surroundings, run.surroundings);
  EXPECT_EQ(history.runs[0].images_per_step, run.images_per_step);
  EXPECT_EQ(history.runs[0].steps[0].seconds, 0.1);
  EXPECT_EQ(history.runs[0].started, run.started);
}

TEST(History, NamesTheCommitAtWhichTheSpeedChanged) {
  const std::vector<Series> all = find_in(history_lines(24, 12, 1.05));
  ASSERT_THAT(all, SizeIs(1));
  ASSERT_THAT(all[0].changes, SizeIs(1));
  EXPECT_EQ(all[0].changes[0].run, 12U);
  EXPECT_EQ(all[0].changes[0].before, "c5");
  EXPECT_EQ(all[0].changes[0].after, "c6");
  EXPECT_NEAR(percent(all[0].changes[0].slowdown), 5, 0.3);
  EXPECT_EQ(exit_code_of(all), 1);
  EXPECT_THAT(history_text(all, {}),
              AllOf(HasSubstr("resnet20, 16 images: 24 runs"), HasSubstr("from run 13 of 24 on"),
                    HasSubstr("commit c6"), HasSubstr("% longer; the run before has commit c5")));
}

TEST(History, CallsAChangeForTheBetterNoRegression) {
  const std::vector<Series> all = find_in(history_lines(24, 12, 0.9));
  EXPECT_THAT(history_text(all, {}), HasSubstr("% less"));
  EXPECT_EQ(exit_code_of(all), 0);
}

TEST(History, SaysWhatElseChangedWithTheSpeed) {
  std::string text = history_lines(24, 12, 1.05);
  const std::size_t middle = text.rfind('\n', text.find("00:00:12Z"));
  for (std::size_t at = middle; (at = text.find("3.2.0", at)) != std::string::npos;) {
    text.replace(at, 5, "3.4.1");
  }
  const std::vector<Series> all = find_in(text);
  ASSERT_THAT(all[0].changes, SizeIs(1));
  EXPECT_THAT(all[0].changes[0].together, ElementsAre("oneDNN: 3.2.0 before, 3.4.1 now"));
}

TEST(History, FindsNothingInRunsThatOnlyScatter) {
  const std::vector<Series> all = find_in(history_lines(40, 40, 1));
  EXPECT_THAT(all[0].changes, IsEmpty());
  EXPECT_EQ(exit_code_of(all), 0);
  EXPECT_THAT(history_text(all, {}), HasSubstr("no change of 0.5 % or more"));
}

TEST(History, LeavesOutChangesBelowTheMinimumEffect) {
  const std::string text = history_lines(40, 20, 1.03);
  Settings coarse;
  coarse.minimum_effect = 0.1;
  EXPECT_THAT(find_history(parse_history("h", text).runs, coarse, false)[0].changes, IsEmpty());
}

TEST(History, SaysHowManyRunsItNeedsIfItIsTooShort) {
  const std::vector<Series> all = find_in(history_lines(7, 4, 2));
  EXPECT_THAT(all[0].changes, IsEmpty());
  EXPECT_EQ(exit_code_of(all), 2);
  EXPECT_THAT(history_text(all, {}), HasSubstr("too short: 3 more runs, 10 in all"));
}

TEST(History, KeepsConfigurationsApart) {
  std::string text = history_lines(12, 6, 1.1);
  for (std::size_t i = 0; i < 12; ++i) {
    Json other = history_result(0.3, "x", 20 + i);
    other["model"]["name"] = "vgg16";
    text += history_line(run_of(other));
  }
  const std::vector<Series> all = find_in(text);
  ASSERT_THAT(all, SizeIs(2));
  EXPECT_THAT(all[0].changes, SizeIs(1));
  EXPECT_THAT(all[1].changes, IsEmpty());
  EXPECT_THAT(all[1].label, HasSubstr("vgg16"));
}

TEST(History, NamesLinesThatItCannotRead) {
  const std::string good = history_lines(2, 2, 1);
  const std::string cut = good.substr(0, good.size() / 3);
  const History history = parse_history(
      "h.jsonl", good + cut + "\n\n[1]\n" + R"({"program": "cnn_benchmarks"})" + "\n" +
                     R"({"program":"cnn_benchmarks","history":1,"step_seconds":-1})");
  EXPECT_THAT(history.runs, SizeIs(2));
  EXPECT_THAT(
      history.problems,
      ElementsAre(HasSubstr("h.jsonl:3: cut off"), HasSubstr("h.jsonl:5: JSON, but no line"),
                  HasSubstr("h.jsonl:6: JSON, but no line"),
                  HasSubstr("h.jsonl:7: a line with a damaged value (step_seconds is -1); the line "
                            "is left out")));
}

TEST(History, IsAnErrorWithoutARun) {
  EXPECT_THAT(tests::error_of([] { parse_history("h", ""); }), HasSubstr("h: empty"));
  EXPECT_THAT(tests::error_of([] { parse_history("h", "{\n"); }),
              HasSubstr("h:1: cut off; was the run killed while it wrote?"));
}

TEST(History, LeavesOutRunsThatOtherWorkDisturbed) {
  std::string text = history_lines(20, 20, 1);
  for (std::size_t i = 0; i < 4; ++i) {
    Json hogged = history_result(0.2, "hog", 40 + i);
    for (Json& step : hogged["steps"]) {
      step["disturbed"] = true;
    }
    text += history_line(run_of(hogged));
  }
  const std::vector<Series> all = find_in(text);
  EXPECT_THAT(all[0].runs, SizeIs(20));
  EXPECT_THAT(all[0].changes, IsEmpty());
  EXPECT_THAT(all[0].notes, ElementsAre(HasSubstr("4 of the 24 runs do not count")));
}

TEST(History, HasRunsAndChangesInItsJson) {
  const Json json = Json::parse(history_json(find_in(history_lines(24, 12, 1.05)), {}));
  EXPECT_EQ(json["exit_code"], 1);
  const Json& series = json["configurations"][0];
  EXPECT_THAT(series["runs"], SizeIs(24));
  EXPECT_EQ(series["changes"][0]["run"], 13);
  EXPECT_EQ(series["changes"][0]["commit"], "c6");
}

TEST(History, RefusesAConfidenceThatTakesTooLongAndNamesTheLargest) {
  const History history = parse_history("h", history_lines(100, 50, 1.05));
  const std::string refusal =
      tests::error_of([&] { find_history(history.runs, {.confidence = 0.999999}, false); });
  EXPECT_THAT(refusal, HasSubstr("--confidence=99.9999: the permutation test of these 100 runs"));
  EXPECT_THAT(refusal, HasSubstr("the largest confidence for them is 99.9995"));
}

TEST(History, AcceptsTheLargestConfidenceThatItNames) {
  const History history = parse_history("h", history_lines(100, 100, 1));
  const std::vector<Series> all = find_history(history.runs, {.confidence = 0.999995}, false);
  EXPECT_THAT(all[0].changes, IsEmpty());
}

}  // namespace
}  // namespace cnn::compare
