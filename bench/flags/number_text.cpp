#include "bench/flags/number_text.h"

#include <charconv>
#include <cmath>
#include <fmt/format.h>
#include <system_error>

namespace cnn::bench {

namespace {

template <class Number>
std::optional<Number> read_number(std::string_view text) {
  if (text.starts_with('+') && !text.starts_with("+-")) {
    text.remove_prefix(1);  // from_chars knows no plus sign
  }
  Number number{};
  const char* const end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, number);
  if (error != std::errc() || stop != end) {
    return std::nullopt;
  }
  return number;
}

}  // namespace

std::optional<std::int64_t> read_integer(std::string_view text) {
  return read_number<std::int64_t>(text);
}

std::optional<double> read_float(std::string_view text) {
  const std::optional<double> number = read_number<double>(text);
  return number && std::isfinite(*number) ? number : std::nullopt;
}

std::string fixed(double value, int decimals) {
  return std::isnan(value) ? "nan" : fmt::format("{:.{}f}", value, decimals);
}

std::string shortest(double value) {
  if (std::isnan(value)) {
    return "nan";
  }
  std::string text = fmt::format("{}", value);
  if (text.find_first_of(".ein") == std::string::npos) {
    text += ".0";
  }
  return text;
}

std::string quoted_list(std::span<const std::string> words) {
  std::string text = "[";
  for (const std::string& word : words) {
    text += fmt::format("{}'{}'", text.size() > 1 ? ", " : "", word);
  }
  return text + "]";
}

}  // namespace cnn::bench
