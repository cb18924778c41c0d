#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <string>
#include <vector>

#include "bench/page/page.h"
#include "tests/bench/compare/runs.h"

namespace cnn::page {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

// Returns the page of runs with these speeds; equal speeds have the same commit.
std::string history_page_of(const std::vector<double>& seconds) {
  std::string text;
  for (std::size_t i = 0; i < seconds.size(); ++i) {
    const double each = seconds[i] * (1 + 0.001 * static_cast<double>(i % 3));
    compare::Json result = compare::result_of({each, each, each});
    result["commit"] = seconds[i] == seconds.front() ? "old<er" : "newer";
    text += compare::history_line(compare::run_of(result));
  }
  const compare::Settings settings;
  return history_page(
      compare::find_history(compare::parse_history("h", text).runs, settings, false), settings);
}

std::size_t dots_in(const std::string& page) {
  std::size_t count = 0;
  for (std::size_t at = page.find("<circle class=\"dot b\""); at != std::string::npos;
       at = page.find("<circle class=\"dot b\"", at + 1)) {
    ++count;
  }
  return count;
}

TEST(HistoryPage, ShowsEachRunAndWhereTheSpeedChanged) {
  std::vector<double> seconds(10, 0.1);
  seconds.resize(20, 0.2);
  const std::string page = history_page_of(seconds);
  EXPECT_EQ(dots_in(page), 20U);
  EXPECT_THAT(page,
              AllOf(HasSubstr("from run 11 of 20 on"), HasSubstr("commit newer"),
                    HasSubstr("commit old&lt;er: 160.00 images/sec"), HasSubstr(">-50.0 %</text>"),
                    HasSubstr("median 159.84 images/sec"), HasSubstr("<p class=\"regression\">")));
}

TEST(HistoryPage, MarksAChangeForTheBetter) {
  std::vector<double> seconds(10, 0.2);
  seconds.resize(20, 0.1);
  EXPECT_THAT(history_page_of(seconds),
              AllOf(HasSubstr("<p class=\"improvement\">"), HasSubstr(">+100.0 %</text>"),
                    Not(HasSubstr("<p class=\"regression\">"))));
}

TEST(HistoryPage, SaysThatNothingChanged) {
  const std::string page = history_page_of(std::vector<double>(20, 0.1));
  EXPECT_THAT(page, AllOf(HasSubstr("<p>No change of 0.5 % or more.</p>"),
                          Not(HasSubstr("runs are too few"))));
}

TEST(HistoryPage, SaysHowManyRunsAreMissing) {
  const std::string page = history_page_of({0.1, 0.1});
  EXPECT_EQ(dots_in(page), 2U);
  EXPECT_THAT(page, testing::ContainsRegex("<p>2 runs are too few: [0-9]+ could show a change."));
}

TEST(HistoryPage, DrawsASingleRun) {
  const std::string page = history_page_of({0.1});
  EXPECT_EQ(dots_in(page), 1U);
  EXPECT_THAT(page, AllOf(Not(HasSubstr("nan")), Not(HasSubstr("inf"))));
}

}  // namespace
}  // namespace cnn::page
