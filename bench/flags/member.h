#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include "bench/flags/config.h"

namespace cnn::bench {

// A flag's value without its C++ type: monostate is "unset".
using Plain =
    std::variant<std::monostate, bool, std::int64_t, double, std::string, std::vector<std::string>>;

enum class Type : std::uint8_t {
  boolean,
  integer,       // of 32 bits
  long_integer,  // of 64 bits
  real,
  text,
  integers,  // lists: words with commas between
  reals,
  texts
};

// Accessors of the configuration member that holds a flag's value.
struct Member {
  Type type{};
  void (*store)(Config&, const Plain&) = nullptr;  // value: of that type, or unset
  Plain (*load)(const Config&) = nullptr;
  std::vector<std::string> (*words)() = nullptr;  // allowed words; null or empty: any
};

// Load and store functions for each type of member.
Plain load(bool from);
Plain load(int from);
Plain load(std::int64_t from);
Plain load(double from);
Plain load(const std::string& from);
Plain load(const std::vector<std::int64_t>& from);
Plain load(const std::vector<double>& from);
Plain load(layers::Rule from);
Plain load(lms::SyncMode from);                          // its number
Plain load(const std::optional<allreduce::Wire>& from);  // "auto" if unset
Plain load(const data::Row* from);                       // its name; null is unset
Plain load(const models::RatePieces& from);
Plain load(const BatchSlices& from);  // its number, or "auto"
Plain load(const RowSlices& from);    // as well
Plain load(const DenseSlices& from);  // as well
Plain load(const std::vector<std::string>& from);
void store(bool& to, const Plain& value);
void store(int& to, const Plain& value);
void store(std::int64_t& to, const Plain& value);
void store(double& to, const Plain& value);
void store(std::string& to, const Plain& value);
void store(std::vector<std::int64_t>& to, const Plain& value);
void store(std::vector<double>& to, const Plain& value);
void store(layers::Rule& to, const Plain& value);
void store(lms::SyncMode& to, const Plain& value);
void store(std::optional<allreduce::Wire>& to, const Plain& value);
void store(const data::Row*& to, const Plain& value);    // throws Error for an unknown name
void store(models::RatePieces& to, const Plain& value);  // throws Error if it cannot be parsed
void store(BatchSlices& to, const Plain& value);  // throws Error if it is neither a count nor auto
void store(RowSlices& to, const Plain& value);    // as well
void store(DenseSlices& to, const Plain& value);  // as well
void store(std::vector<std::string>& to, const Plain& value);

template <class Choice>
concept Enum = std::is_enum_v<Choice>;

template <Enum Choice>
Plain load(Choice from) {
  return std::string(word_of(from));
}

template <Enum Choice>
void store(Choice& to, const Plain& value) {
  for (const Word<Choice>& word : words<Choice>) {
    if (word.text == std::get<std::string>(value)) {
      to = word.value;
    }
  }
}

template <class Value>
Plain load(const std::optional<Value>& from) {
  return from ? load(*from) : Plain();
}

template <class Value>
void store(std::optional<Value>& to, const Plain& value) {
  to.reset();
  if (!std::holds_alternative<std::monostate>(value)) {
    store(to.emplace(), value);
  }
}

template <class Value>
inline constexpr Type type_for = Type::text;  // for enums too
template <>
inline constexpr Type type_for<bool> = Type::boolean;
template <>
inline constexpr Type type_for<int> = Type::integer;
template <>
inline constexpr Type type_for<std::int64_t> = Type::long_integer;
template <>
inline constexpr Type type_for<double> = Type::real;
template <>
inline constexpr Type type_for<std::vector<std::int64_t>> = Type::integers;
template <>
inline constexpr Type type_for<std::vector<double>> = Type::reals;
template <>
inline constexpr Type type_for<std::vector<std::string>> = Type::texts;
template <>
inline constexpr Type type_for<lms::SyncMode> = Type::integer;
template <class Value>
inline constexpr Type type_for<std::optional<Value>> = type_for<Value>;

template <class Value>
std::vector<std::string> words_for() {
  std::vector<std::string> texts;
  if constexpr (Enum<Value>) {
    for (const Word<Value>& word : words<Value>) {
      texts.emplace_back(word.text);
    }
  }
  return texts;
}

template <>
std::vector<std::string> words_for<layers::Rule>();
template <>
std::vector<std::string> words_for<std::optional<allreduce::Wire>>();

// at<&Config::size, &SizeOptions::batch> accesses config.size.batch.
template <auto... path>
inline constexpr Member at = [] {
  using Value = std::remove_cvref_t<decltype((std::declval<Config&>().*....*path))>;
  return Member{
      .type = type_for<Value>,
      .store = [](Config& config, const Plain& value) { store((config.*....*path), value); },
      .load = [](const Config& config) { return load((config.*....*path)); },
      .words = words_for<Value>};
}();

// Returns the member restricted to these words.
constexpr Member limited(Member member, std::vector<std::string> (*words)()) {
  member.words = words;
  return member;
}

}  // namespace cnn::bench
