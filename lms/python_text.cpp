#include "lms/python_text.h"

#include <array>
#include <charconv>
#include <cmath>
#include <cstdio>

namespace cnn::lms {
namespace {

constexpr double mib = 1024.0 * 1024.0;

std::string with_a_decimal(const std::string& text) {
  return text.find_first_of(".einf") == std::string::npos ? text + ".0" : text;
}

}  // namespace

std::string python_text(double value) {
  std::array<char, 64> text{};
  const auto end = std::to_chars(text.begin(), text.end(), value).ptr;
  return with_a_decimal({text.begin(), end});
}

std::string rounded_text(double value) {
  if (!std::isfinite(value)) {
    return python_text(value);
  }
  std::array<char, 400> buffer{};
  std::snprintf(buffer.data(), buffer.size(), "%.2f", value);
  std::string text = buffer.data();
  while (text.ends_with("0") && !text.ends_with(".0")) {
    text.pop_back();
  }
  return text;
}

std::string gib_text(std::uint64_t bytes) {
  return rounded_text(static_cast<double>(bytes) / mib / 1024);
}
std::string mib_text(std::uint64_t bytes) { return rounded_text(static_cast<double>(bytes) / mib); }

}  // namespace cnn::lms
