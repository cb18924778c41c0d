#include "bench/page/chart.h"

#include <cmath>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <limits>
#include <string>
#include <vector>

namespace cnn::page {
namespace {

using testing::AllOf;
using testing::DoubleNear;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using testing::Pointwise;

constexpr double chart_nan = std::numeric_limits<double>::quiet_NaN();

TEST(ChartText, IsEscapedForHtmlAndAttributes) {
  EXPECT_EQ(escaped(R"(<a href="x">&'</a>)"), "&lt;a href=&quot;x&quot;&gt;&amp;'&lt;/a&gt;");
  EXPECT_EQ(escaped(""), "");
}

TEST(ChartRange, HoldsAllValuesAndATwentiethMore) {
  const Range range = range_of({3, 1, 2}, false);
  EXPECT_DOUBLE_EQ(range.low, 0.9);
  EXPECT_DOUBLE_EQ(range.high, 3.1);
}

TEST(ChartRange, BeginsAtZeroIfAskedTo) {
  EXPECT_EQ(range_of({3, 1}, true).low, 0);
  EXPECT_LT(range_of({3, -1}, true).low, -1) << "the axis starts below a negative value";
}

TEST(ChartRange, LeavesOutWhatIsNoNumber) {
  const double infinity = std::numeric_limits<double>::infinity();
  const Range range = range_of({chart_nan, 1, infinity, 2, -infinity}, false);
  EXPECT_DOUBLE_EQ(range.low, 0.95);
  EXPECT_DOUBLE_EQ(range.high, 2.05);
  EXPECT_EQ(range_of({chart_nan}, false).high, 1);
}

TEST(ChartRange, HasRoomAroundAConstant) {
  for (const double value : {5.0, -5.0, 0.0, 1e-300, 1e300}) {
    const Range range = range_of({value, value}, false);
    EXPECT_LT(range.low, value);
    EXPECT_GT(range.high, value);
  }
  EXPECT_EQ(range_of({}, true).low, 0);
  EXPECT_EQ(range_of({}, true).high, 1);
}

TEST(ChartRange, TakesValuesThatOnlyRoundingTellsApartForEqual) {
  for (const double value : {5.0, 1e-3, 1.6e18}) {
    const Range range = range_of({value, std::nextafter(value, 2 * value)}, false);
    EXPECT_LT(range.low, 0.96 * value);
    EXPECT_GT(range.high, 1.04 * value);
  }
}

TEST(ChartRange, LeavesAFewValuesFarAboveTheOthersOut) {
  std::vector<double> values(20, 0.1);
  values[3] = 0.12;
  EXPECT_EQ(range_of_most(values, true).high, range_of(values, true).high);
  values[7] = 5;
  EXPECT_LT(range_of_most(values, true).high, 0.2);
  for (std::size_t i = 0; i < values.size(); i += 2) {
    values[i] = 5;  // too many to be outliers
  }
  EXPECT_GT(range_of_most(values, true).high, 5);
}

TEST(ChartRange, LeavesNoneOfAHandfulOut) {
  EXPECT_GT(range_of_most({1, 1, 1, 100}, true).high, 100);
  EXPECT_EQ(range_of_most({}, true).high, 1);
}

TEST(ChartTicks, AreRoundNumbersInsideTheRange) {
  EXPECT_THAT(ticks({0, 1}, 5), Pointwise(DoubleNear(1e-9), {0.0, 0.2, 0.4, 0.6, 0.8, 1.0}));
  EXPECT_THAT(ticks({-3, 12}, 4), ElementsAre(0, 5, 10));
  EXPECT_THAT(ticks({159.9, 160.1}, 4),
              Pointwise(DoubleNear(1e-9), {159.9, 159.95, 160.0, 160.05}));
}

TEST(ChartTicks, AreNoneWhereTheRangeIsTooNarrowToCountThem) {
  EXPECT_THAT(ticks({1, std::nextafter(1, 2)}, 5), IsEmpty());
  EXPECT_THAT(ticks({1.6e18, 1.6e18 + 256}, 5), IsEmpty());
  EXPECT_THAT(ticks({2, 2}, 5), IsEmpty());
  EXPECT_THAT(ticks({chart_nan, 1}, 5), IsEmpty());
}

TEST(ChartNumber, HasFourDigitsAtMost) {
  EXPECT_EQ(short_number(0), "0");
  EXPECT_EQ(short_number(1e-17), "0") << "a tick at zero has a rounding error";
  EXPECT_EQ(short_number(0.25), "0.25");
  EXPECT_EQ(short_number(-1234.5678), "-1235");
  EXPECT_EQ(short_number(12345), "12.35k");
  EXPECT_EQ(short_number(1234567), "1.235M");
  EXPECT_EQ(short_number(2.5e9), "2.5G");
  EXPECT_EQ(short_number(4e32), "4e+32");
}

TEST(ChartNumber, GoesIntoTheNextUnitWhereItIsRoundedUpToIt) {
  EXPECT_EQ(short_number(9999), "9999");
  EXPECT_EQ(short_number(9999.8), "10k");
  EXPECT_EQ(short_number(-999'990), "-1M");
  EXPECT_EQ(short_number(999'999'999), "1G");
}

TEST(ChartNumber, HasAsManyDigitsOnAnAxisAsTellTicksApart) {
  EXPECT_THAT(labels_of({0, 5, 10}), ElementsAre("0", "5", "10"));
  EXPECT_THAT(labels_of({159.75, 159.8, 159.85}), ElementsAre("159.75", "159.8", "159.85"));
  EXPECT_THAT(labels_of({100'000, 100'005, 100'010}), ElementsAre("100k", "100.005k", "100.01k"));
  EXPECT_THAT(labels_of({1, 1 + 1e-9}), ElementsAre("1", "1"))
      << "labels have at most seven digits";
  EXPECT_THAT(labels_of({}), IsEmpty());
}

Chart numbers_chart() { return {{"title", "x", "y"}, Range{0, 10}, Range{0, 100}}; }

TEST(ChartDrawing, EscapesEverythingThatComesFromFiles) {
  Chart chart({"<t>", "<x>", "<y>"}, Range{0, 1}, std::vector<std::string>{"<row>"});
  chart.dot(0.5, 0.5, "a", "<dot>");
  chart.bar({0, 1}, {0, 1}, "a", "<bar>");
  chart.line({{0, 0}, {1, 1}}, "a", "<line>");
  chart.level(0.5, "rule", "<level>");
  chart.upright(0.5, "rule", "<upright>");
  const std::string drawing = chart.svg();
  for (const char* text :
       {"<t>", "<x>", "<y>", "<row>", "<dot>", "<bar>", "<line>", "<level>", "<upright>"}) {
    EXPECT_THAT(drawing, AllOf(Not(HasSubstr(text)), HasSubstr(escaped(text))));
  }
}

TEST(ChartDrawing, ShowsADotAboveTheRangeByAnArrow) {
  Chart inside = numbers_chart();
  inside.dot(5, 100, "a", "in");
  EXPECT_THAT(inside.svg(), AllOf(HasSubstr("<circle class=\"dot a\""), Not(HasSubstr("arrow"))));
  Chart above = numbers_chart();
  above.dot(5, 101, "a", "above");
  EXPECT_THAT(above.svg(), AllOf(HasSubstr("class=\"dot arrow a\""), Not(HasSubstr("<circle"))));
}

TEST(ChartDrawing, LeavesPointsOutOfALineThatAreNoNumbers) {
  Chart chart = numbers_chart();
  chart.line({{0, chart_nan}, {5, 50}, {10, 100}}, "a", "about");
  const std::string drawing = chart.svg();
  EXPECT_THAT(drawing, testing::ContainsRegex("d=\"M[0-9.]+,[0-9.]+L[0-9.]+,[0-9.]+\""));
  EXPECT_THAT(drawing, Not(HasSubstr("nan")));
}

TEST(ChartDrawing, PutsRowsFromTheTop) {
  Chart chart({"title", "x", ""}, Range{0, 1}, std::vector<std::string>{"first", "second"});
  const std::string drawing = chart.svg();
  const auto height_of = [&](const std::string& name) {
    const std::size_t text = drawing.rfind("<text", drawing.find(">" + name + "<"));
    return std::stod(drawing.substr(drawing.find("y=\"", text) + 3));
  };
  EXPECT_LT(height_of("first"), height_of("second"));
}

TEST(ChartDrawing, EndsInAnArrowWhereASpanGoesOn) {
  const auto drawing_of = [](double from, double to) {
    Chart chart({"title", "x", ""}, Range{-10, 40}, std::vector<std::string>{"row"});
    chart.span({from, to}, 0.5, "b", "about");
    return chart.svg();
  };
  EXPECT_THAT(drawing_of(-5, 30), Not(HasSubstr("arrow")));
  EXPECT_THAT(drawing_of(-5, 98.98), AllOf(HasSubstr("rotate(90)"), Not(HasSubstr("rotate(-90)"))));
  EXPECT_THAT(drawing_of(-58, 30), HasSubstr("rotate(-90)"));
}

}  // namespace
}  // namespace cnn::page
