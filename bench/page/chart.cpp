#include "bench/page/chart.h"

#include <algorithm>
#include <cmath>
#include <fmt/format.h>

namespace cnn::page {
namespace {

// Sizes in units of the drawing. A phone's column has about this width, so letters keep their size.
constexpr double width = 460, default_height = 260, top = 12, bottom = 38, right = 12;
constexpr double left_of_numbers = 52, left_of_names = 96, row_height = 30;

std::string about_text(std::string_view about) {
  return about.empty() ? std::string() : fmt::format("<title>{}</title>", escaped(about));
}

constexpr int usual_digits = 4;

// Returns the number in the largest of the units k, M and G in which `digits` digits show at least
// one, from 10k on.
std::string number_of_digits(double value, int digits) {
  constexpr std::pair<double, const char*> units[] = {{1e9, "G"}, {1e6, "M"}, {1e4, "k"}};
  constexpr double too_large = 1e13;  // a diverged loss: shown plainly, with an exponent
  const double rounded_up = 1 - 0.5 * std::pow(10, -digits);  // is shown as a whole unit
  for (const auto& [unit, name] : units) {
    if (std::abs(value) >= rounded_up * unit && std::abs(value) < too_large) {
      return fmt::format("{:.{}g}{}", value / (unit == 1e4 ? 1e3 : unit), digits, name);
    }
  }
  return fmt::format("{:.{}g}", std::abs(value) < 1e-12 ? 0.0 : value, digits);
}

}  // namespace

std::string escaped(std::string_view text) {
  std::string result;
  for (const char c : text) {
    switch (c) {
      case '&':
        result += "&amp;";
        break;
      case '<':
        result += "&lt;";
        break;
      case '>':
        result += "&gt;";
        break;
      case '"':
        result += "&quot;";
        break;
      default:
        result += c;
    }
  }
  return result;
}

Range range_of(const std::vector<double>& values, bool from_zero) {
  std::vector<double> finite;
  std::ranges::copy_if(values, std::back_inserter(finite),
                       [](double value) { return std::isfinite(value); });
  if (finite.empty()) {
    return {};
  }
  const auto [least, most] = std::ranges::minmax(finite);
  const double low = from_zero ? std::min(0.0, least) : least;
  const double rounding = 1e-12 * std::max(std::abs(most), std::abs(low));
  const double room =
      most - low > rounding ? (most - low) / 20 : std::max(std::abs(most) / 20, 1e-9);
  return {from_zero && least >= 0 ? 0 : low - room, most + room};
}

Range range_of_most(const std::vector<double>& values, bool from_zero) {
  constexpr double far = 6;      // interquartile ranges above the upper quartile
  constexpr double few = 0.1;    // of the values
  constexpr double flat = 0.05;  // of the median: minimum interquartile range
  std::vector<double> sorted;
  std::ranges::copy_if(values, std::back_inserter(sorted),
                       [](double value) { return std::isfinite(value); });
  std::ranges::sort(sorted);
  if (sorted.size() < 5) {
    return range_of(sorted, from_zero);
  }
  const double lower = sorted[sorted.size() / 4], upper = sorted[3 * sorted.size() / 4];
  const double spread = std::max(upper - lower, flat * std::abs(sorted[sorted.size() / 2]));
  const auto beyond = std::ranges::upper_bound(sorted, upper + far * spread);
  const auto count = static_cast<double>(sorted.end() - beyond);
  if (count <= 1 + few * static_cast<double>(sorted.size())) {
    sorted.erase(beyond, sorted.end());
  }
  return range_of(sorted, from_zero);
}

std::vector<double> ticks(Range range, int count) {
  const double rough = (range.high - range.low) / count;
  const double power = std::pow(10, std::floor(std::log10(rough)));
  const double share = rough / power;
  const double step = power * (share < 1.5 ? 1 : share < 3.5 ? 2 : share < 7.5 ? 5 : 10);
  const double first = std::ceil(range.low / step);
  // Beyond this number the next one is the same double, and the loop would not terminate.
  constexpr double countable = 9007199254740992;
  std::vector<double> result;
  if (!(std::max(std::abs(first), std::abs(range.high / step)) < countable)) {
    return result;
  }
  for (double i = first; i * step <= range.high; ++i) {
    result.push_back(i * step);
  }
  return result;
}

std::string short_number(double value) { return number_of_digits(value, usual_digits); }

std::vector<std::string> labels_of(const std::vector<double>& ticks) {
  constexpr int max_digits = 7;
  for (int digits = usual_digits;; ++digits) {
    std::vector<std::string> labels;
    labels.reserve(ticks.size());
    for (const double value : ticks) {
      labels.push_back(number_of_digits(value, digits));
    }
    if (digits == max_digits || std::ranges::adjacent_find(labels) == labels.end()) {
      return labels;
    }
  }
}

Chart::Chart(Titles titles, Range x, Range y)
    : titles_(std::move(titles)), x_(x), y_(y), left_(left_of_numbers), height_(default_height) {}

Chart::Chart(Titles titles, Range x, std::vector<std::string> rows)
    : titles_(std::move(titles)),
      x_(x),
      y_{static_cast<double>(rows.size()), 0},
      rows_(std::move(rows)),
      left_(left_of_names),
      height_(top + bottom + row_height * static_cast<double>(rows_.size())) {}

double Chart::at_x(double value) const {
  return left_ + (width - left_ - right) * (value - x_.low) / (x_.high - x_.low);
}

double Chart::at_y(double value) const {
  return height_ - bottom - (height_ - top - bottom) * (value - y_.low) / (y_.high - y_.low);
}

void Chart::line(const Points& points, std::string_view style, std::string_view about) {
  std::string path;
  for (const auto& [x, y] : points) {
    if (std::isfinite(y)) {
      path += fmt::format("{}{:.2f},{:.2f}", path.empty() ? "M" : "L", at_x(x),
                          at_y(is_above(y) ? y_.high : y));
    }
    if (std::isfinite(y) && is_above(y)) {
      arrow(at_x(x), top, Direction::up, style,
            fmt::format("{}: {} at {}", about, short_number(y), short_number(x)));
    }
  }
  body_ +=
      fmt::format("<path class=\"line {}\" d=\"{}\">{}</path>\n", style, path, about_text(about));
}

void Chart::area(const Points& points, std::string_view style, std::string_view about) {
  if (points.empty()) {
    return;
  }
  std::string path = fmt::format("M{:.2f},{:.2f}", at_x(points.front().first), at_y(y_.low));
  for (const auto& [x, y] : points) {
    path += fmt::format("L{:.2f},{:.2f}", at_x(x), at_y(y));
  }
  path += fmt::format("L{:.2f},{:.2f}Z", at_x(points.back().first), at_y(y_.low));
  body_ +=
      fmt::format("<path class=\"area {}\" d=\"{}\">{}</path>\n", style, path, about_text(about));
}

void Chart::arrow(double x, double y, Direction direction, std::string_view style,
                  std::string_view about) {
  constexpr int degrees[] = {0, 90, -90};
  body_ += fmt::format(
      "<path class=\"dot arrow {}\" d=\"M0,0L4,8L-4,8Z\" transform=\"translate({:.2f} {:.2f}) "
      "rotate({})\">{}</path>\n",
      style, x, y, degrees[static_cast<int>(direction)], about_text(about));
}

void Chart::span(std::pair<double, double> x, double y, std::string_view style,
                 std::string_view about) {
  const auto [from, to] = x;
  line({{std::max(from, x_.low), y}, {std::min(to, x_.high), y}}, style, about);
  if (from < x_.low) {
    arrow(at_x(x_.low), at_y(y), Direction::left, style, about);
  }
  if (to > x_.high) {
    arrow(at_x(x_.high), at_y(y), Direction::right, style, about);
  }
}

void Chart::dot(double x, double y, std::string_view style, std::string_view about) {
  if (is_above(y)) {
    arrow(at_x(x), top, Direction::up, style, about);
    return;
  }
  body_ += fmt::format("<circle class=\"dot {}\" cx=\"{:.2f}\" cy=\"{:.2f}\" r=\"3\">{}</circle>\n",
                       style, at_x(x), at_y(y), about_text(about));
}

void Chart::bar(std::pair<double, double> x, std::pair<double, double> y, std::string_view style,
                std::string_view about) {
  const double from = std::min(at_x(x.first), at_x(x.second));
  const double upper = std::min(at_y(y.first), at_y(y.second));
  body_ += fmt::format(
      "<rect class=\"bar {}\" x=\"{:.2f}\" y=\"{:.2f}\" width=\"{:.2f}\" "
      "height=\"{:.2f}\">{}</rect>\n",
      style, from, upper, std::max(0.3, std::abs(at_x(x.second) - at_x(x.first))),
      std::abs(at_y(y.second) - at_y(y.first)), about_text(about));
}

void Chart::level(double y, std::string_view style, std::string_view label, End at) {
  const bool right_end = at == End::right;
  body_ += fmt::format(
      "<line class=\"{}\" x1=\"{:.2f}\" x2=\"{:.2f}\" y1=\"{:.2f}\" y2=\"{:.2f}\"/>"
      "<text class=\"label\" x=\"{:.2f}\" y=\"{:.2f}\" text-anchor=\"{}\">{}</text>\n",
      style, left_, width - right, at_y(y), at_y(y), right_end ? width - right - 2 : left_ + 2,
      at_y(y) - 4, right_end ? "end" : "start", escaped(label));
}

void Chart::upright(double x, std::string_view style, std::string_view label) {
  const bool near_end = at_x(x) > width - 80;  // otherwise a label would leave the drawing
  body_ += fmt::format(
      "<line class=\"{}\" x1=\"{:.2f}\" x2=\"{:.2f}\" y1=\"{:.2f}\" y2=\"{:.2f}\"/>"
      "<text class=\"label\" x=\"{:.2f}\" y=\"{:.2f}\"{}>{}</text>\n",
      style, at_x(x), at_x(x), top, height_ - bottom, near_end ? at_x(x) - 3 : at_x(x) + 3, top + 9,
      near_end ? " text-anchor=\"end\"" : "", escaped(label));
}

std::string Chart::axes() const {
  std::string text;
  const double floor = height_ - bottom;
  const std::vector<double> columns = ticks(x_, 5);
  const std::vector<std::string> names_of_columns = labels_of(columns);
  for (std::size_t i = 0; i < columns.size(); ++i) {
    text += fmt::format(
        "<line class=\"grid\" x1=\"{0:.2f}\" x2=\"{0:.2f}\" y1=\"{1}\" y2=\"{2}\"/><text "
        "x=\"{0:.2f}\" "
        "y=\"{3}\" text-anchor=\"middle\">{4}</text>\n",
        at_x(columns[i]), top, floor, floor + 14, names_of_columns[i]);
  }
  const std::vector<double> heights = rows_.empty() ? ticks(y_, 5) : std::vector<double>();
  const std::vector<std::string> names_of_heights = labels_of(heights);
  for (std::size_t i = 0; i < heights.size(); ++i) {
    text += fmt::format(
        "<line class=\"grid\" x1=\"{0}\" x2=\"{1}\" y1=\"{2:.2f}\" y2=\"{2:.2f}\"/><text x=\"{3}\" "
        "y=\"{4:.2f}\" text-anchor=\"end\">{5}</text>\n",
        left_, width - right, at_y(heights[i]), left_ - 5, at_y(heights[i]) + 4,
        names_of_heights[i]);
  }
  for (std::size_t i = 0; i < rows_.size(); ++i) {
    text += fmt::format("<text x=\"{}\" y=\"{:.2f}\" text-anchor=\"end\">{}</text>\n", left_ - 5,
                        at_y(static_cast<double>(i) + 0.5) + 4, escaped(rows_[i]));
  }
  return text + fmt::format("<text x=\"{:.2f}\" y=\"{}\" text-anchor=\"middle\">{}</text>\n",
                            (left_ + width - right) / 2, height_ - 6, escaped(titles_.x));
}

std::string Chart::svg(std::string_view legend) const {
  const std::string unit =
      titles_.y.empty() ? "" : fmt::format(" <small>{}</small>", escaped(titles_.y));
  return fmt::format(
      "<figure><figcaption>{}{}</figcaption><svg viewBox=\"0 0 {} {}\" role=\"img\" "
      "aria-label=\"{}\">\n{}{}</svg>{}</figure>\n",
      escaped(titles_.chart), unit, width, height_, escaped(titles_.chart), axes(), body_, legend);
}

}  // namespace cnn::page
