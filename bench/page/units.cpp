#include "bench/page/units.h"

#include <array>
#include <cmath>
#include <cstddef>
#include <fmt/format.h>

#include "bench/page/json_text.h"

namespace cnn::page {
namespace {

// Formats the first unit as integers and the others with one decimal. Values that would show as a
// full unit, such as 1024.0, move to the next unit.
template <std::size_t count>
std::string scaled(double value, double step, const std::array<const char*, count>& units,
                   const std::string& behind) {
  std::size_t unit = 0;
  const auto shown = [&] { return std::abs(value) + (unit == 0 ? 0.5 : 0.05); };
  while (shown() >= step && unit + 1 < count) {
    value /= step;
    ++unit;
  }
  return unit == 0 ? fmt::format("{:.0f} {}{}", value, units[unit], behind)
                   : fmt::format("{:.1f} {}{}", value, units[unit], behind);
}

}  // namespace

std::string bytes_text(double bytes) {
  return scaled(bytes, 1024, std::array{"B", "KiB", "MiB", "GiB", "TiB"}, "");
}

std::string rate_text(double per_second, const std::string& unit) {
  return scaled(per_second, 1000, std::array{"", "k", "M", "G", "T"}, unit + "/s");
}

std::string readable(const std::string& key, const compare::Json& value) {
  if (!value.is_number()) {
    return text_of(value);
  }
  const auto number = value.get<double>();
  if (key.ends_with("flops_per_second")) {
    return rate_text(number, "FLOP");
  }
  if (key.ends_with("bytes_per_second")) {
    return rate_text(number, "B");
  }
  return key.ends_with("bytes") ? bytes_text(number) : text_of(value);
}

}  // namespace cnn::page
