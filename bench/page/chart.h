#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace cnn::page {

// Returns text escaped for HTML and SVG, attributes included.
std::string escaped(std::string_view text);

struct Range {
  double low = 0, high = 1;
};

// Returns the smallest range of all finite values, widened by a twentieth on both sides; starts at
// 0 if from_zero. Values that differ only by rounding count as equal. Without values the range is 0
// to 1.
Range range_of(const std::vector<double>& values, bool from_zero);

// Returns range_of() without a few outliers that lie so far above the other values that these would
// be indistinguishable. A chart marks points beyond the range by arrows.
Range range_of_most(const std::vector<double>& values, bool from_zero);

// Returns about `count` round numbers inside the range: 1, 2 or 5 times a power of ten apart.
// Returns none if the range is too narrow for doubles to count its steps from zero.
std::vector<double> ticks(Range range, int count);

// Returns a number for an axis: at most four digits, with suffix k, M or G.
std::string short_number(double value);

// Returns the numbers like short_number(), with up to seven digits if neighbours need them to
// differ.
std::vector<std::string> labels_of(const std::vector<double>& ticks);

struct Titles {
  std::string chart, x, y;
};

// A chart as inline SVG, which a page scales to its column. The page's classes define the colours,
// so that one drawing serves light and dark mode. Coordinates are data coordinates.
class Chart {
 public:
  Chart(Titles titles, Range x, Range y);
  // Uses lanes or names instead of numbers along the y axis: row i lies between i and i + 1, from
  // the top.
  Chart(Titles titles, Range x, std::vector<std::string> rows);

  using Points = std::vector<std::pair<double, double>>;
  // `about`: the tooltip. Dots and points of a line above the range become arrows at the upper
  // edge.
  void line(const Points& points, std::string_view style, std::string_view about);
  void area(const Points& points, std::string_view style, std::string_view about);
  void dot(double x, double y, std::string_view style, std::string_view about);
  void bar(std::pair<double, double> x, std::pair<double, double> y, std::string_view style,
           std::string_view about);
  // Draws a line between two places at one height; an end beyond the range becomes an arrow at the
  // edge.
  void span(std::pair<double, double> x, double y, std::string_view style, std::string_view about);
  // Draws a line across the chart, with its label at the right or the left end.
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
