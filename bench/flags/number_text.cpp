#include "bench/flags/number_text.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cxxopts.hpp>
#include <exception>
#include <fmt/format.h>
#include <istream>
#include <utility>

namespace cnn::bench {

namespace {

// A type with its own operator>>, which cxxopts uses unchanged: cxxopts' own parser accepts 0x10,
// and takes parts of 1.5x and of values that overflow.
template <class Number>
struct Decimal {
  Number value{};
};

template <class Number>
std::istream& operator>>(std::istream& in, Decimal<Number>& number) {
  in >> std::noskipws >> number.value;
  if (!in.eof()) {  // trailing characters
    in.setstate(std::ios::failbit);
  }
  return in;
}

template <class Value>
std::optional<Value> typed(const std::string& text) {
  cxxopts::values::standard_value<Value> value;
  try {
    value.parse(text);
  } catch (const std::exception&) {  // its type differs between versions of cxxopts
    return std::nullopt;
  }
  return value.get();
}

template <class Number>
std::optional<Number> read_number(std::string_view text) {
  const auto number = typed<Decimal<Number>>(std::string(text));
  return number ? std::optional<Number>(number->value) : std::nullopt;
}

}  // namespace

std::optional<int> read_integer_of_32_bits(std::string_view text) { return read_number<int>(text); }

std::optional<std::int64_t> read_integer(std::string_view text) {
  return read_number<std::int64_t>(text);
}

std::optional<double> read_float(std::string_view text) { return read_number<double>(text); }

std::optional<bool> read_switch(std::string_view text) {
  std::string word(text);
  std::ranges::transform(word, word.begin(), [](char c) {
    return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  });
  return typed<bool>(word);
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

std::string bytes_text(std::size_t bytes) {
  constexpr std::array<std::pair<unsigned, std::string_view>, 3> units{
      {{30, "GiB"}, {20, "MiB"}, {10, "KiB"}}};
  for (const auto& [shift, name] : units) {
    if (bytes >> shift > 0) {
      return fmt::format("{:.2f} {}", static_cast<double>(bytes) / std::exp2(shift), name);
    }
  }
  return fmt::format("{} bytes", bytes);
}

std::string quoted_list(std::span<const std::string> words) {
  std::string text = "[";
  for (const std::string& word : words) {
    text += fmt::format("{}'{}'", text.size() > 1 ? ", " : "", word);
  }
  return text + "]";
}

}  // namespace cnn::bench
