#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace cnn::page {

// Text for HTML and SVG, attributes included.
std::string escaped(std::string_view text);

struct Range {
  double low = 0, high = 1;
};

// Returns the least range that holds all finite values, widened by a twentieth on both sides; from
// 0 on if from_zero. Values that only rounding tells apart count as equal. The range of no values
// is 0 to 1.
Range range_of(const std::vector<double>& values, bool from_zero);

// The same, but where a few of the values lie so far above the others that these could hardly be
// told apart, the range ends above the others. A chart shows what lies beyond by arrows.
Range range_of_most(const std::vector<double>& values, bool from_zero);

// Returns about `count` round numbers inside the range: 1, 2 or 5 times a power of ten apart. There
// are none in a range that is too narrow for doubles to count its steps from zero.
std::vector<double> ticks(Range range, int count);

// Returns a number as an axis shows it: at most four digits, with k, M or G behind large ones.
std::string short_number(double value);

// Returns the numbers as short_number() does, but with as many more digits as it takes to tell
// neighbours apart, up to seven.
std::vector<std::string> labels_of(const std::vector<double>& ticks);

struct Titles {
  std::string chart, x, y;
};

// A chart as inline SVG, which a page scales to its column. Colours come from the page's classes,
// so that one drawing serves light and dark. Coordinates are those of the data.
class Chart {
 public:
  Chart(Titles titles, Range x, Range y);
  // Lanes or names instead of numbers along the y axis: row i lies between i and i + 1, from the
  // top.
  Chart(Titles titles, Range x, std::vector<std::string> rows);

  using Points = std::vector<std::pair<double, double>>;
  // `about` is the text that a pointer which rests on the thing is shown. A dot or a point of a
  // line above the range becomes an arrow at the upper edge.
  void line(const Points& points, std::string_view style, std::string_view about);
  void area(const Points& points, std::string_view style, std::string_view about);
  void dot(double x, double y, std::string_view style, std::string_view about);
  void bar(std::pair<double, double> x, std::pair<double, double> y, std::string_view style,
           std::string_view about);
  // From one place to another at one height; an end beyond the range becomes an arrow at the edge.
  void span(std::pair<double, double> x, double y, std::string_view style, std::string_view about);
  // Across the chart, with its label at the right end or at the left.
  enum class End { right, left };
  void level(double y, std::string_view style, std::string_view label, End at = End::right);
  void upright(double x, std::string_view style, std::string_view label);  // from top to bottom

  // legend: HTML below the drawing.
  std::string svg(std::string_view legend = {}) const;

 private:
  double at_x(double value) const;
  double at_y(double value) const;
  bool is_above(double y) const { return rows_.empty() && y > y_.high; }
  enum class Direction { up, right, left };
  void arrow(double x, double y, Direction direction, std::string_view style,
             std::string_view about);  // its tip, in units of the drawing
  std::string axes() const;

  Titles titles_;
  Range x_, y_;
  std::vector<std::string> rows_;
  double left_, height_;
  std::string body_;
};

}  // namespace cnn::page
