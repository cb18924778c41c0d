#include "bench/flags/flag_table.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <type_traits>

#include "bench/flags/number_text.h"
#include "runtime/error.h"

namespace cnn::bench {

namespace {

std::string lower(std::string_view text) {
  std::string result(text);
  std::ranges::transform(result, result.begin(), [](char c) {
    return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  });
  return result;
}

std::vector<std::string> split(std::string_view text, char separator) {
  std::vector<std::string> words;
  for (std::size_t begin = 0; begin <= text.size();) {
    const std::size_t end = std::min(text.find(separator, begin), text.size());
    std::string_view word = text.substr(begin, end - begin);
    word.remove_prefix(std::min(word.find_first_not_of(" \t"), word.size()));
    words.emplace_back(word.substr(0, word.find_last_not_of(" \t") + 1));
    begin = end + 1;
  }
  return words;
}

[[noreturn]] void refuse(const Flag& flag, std::string_view text, std::string_view why) {
  throw Error(fmt::format("FATAL Flags parsing error: flag --{}={}: {}", flag.name, text, why));
}

void check_choice(const Flag& flag, const std::string& text) {
  const std::vector<std::string> words = split(flag.choices, '|');
  if (flag.choices.empty() || std::ranges::find(words, text) != words.end()) {
    return;
  }
  const auto same = std::ranges::find_if(
      words, [&](const std::string& word) { return lower(word) == lower(text); });
  const std::string hint =
      same == words.end() ? "" : fmt::format(" (upper and lower case differ: {} ?)", *same);
  refuse(flag, text, fmt::format("value should be one of <{}>{}", fmt::join(words, "|"), hint));
}

template <class Number>
Number in_range(const Flag& flag, const std::string& text, Number number) {
  const auto value = static_cast<double>(number);
  if (value < flag.at_least) {
    refuse(flag, text, fmt::format("must be {} or more", flag.at_least));
  }
  if (value > flag.at_most) {
    refuse(flag, text, fmt::format("must be {} or less", flag.at_most));
  }
  return number;
}

bool to_bool(const Flag& flag, const std::string& text) {
  const std::string word = lower(text);
  if (word == "true" || word == "t" || word == "1") {
    return true;
  }
  if (word == "false" || word == "f" || word == "0") {
    return false;
  }
  refuse(flag, text, "a switch takes true, t, 1, false, f or 0");
}

template <class Integer>
Integer to_integer(const Flag& flag, const std::string& text) {
  const std::optional<std::int64_t> number = read_integer(text);
  if (!number || static_cast<Integer>(*number) != *number) {
    refuse(flag, text,
           fmt::format("not a whole number of {} bits in decimal digits", sizeof(Integer) * 8));
  }
  return in_range(flag, text, static_cast<Integer>(*number));
}

double to_double(const Flag& flag, const std::string& text) {
  const std::optional<double> number = read_float(text);
  if (!number) {
    refuse(flag, text, "not a finite number");
  }
  return in_range(flag, text, *number);
}

// One overload per kind of target. The original treats an empty path like an unset one.
struct Assign {
  const Flag& flag;
  const std::string& text;

  void operator()(bool* to) const { *to = to_bool(flag, text); }
  void operator()(int* to) const { *to = to_integer<int>(flag, text); }
  void operator()(std::int64_t* to) const { *to = to_integer<std::int64_t>(flag, text); }
  void operator()(double* to) const { *to = to_double(flag, text); }
  void operator()(std::optional<bool>* to) const { *to = to_bool(flag, text); }
  void operator()(std::optional<int>* to) const { *to = to_integer<int>(flag, text); }
  void operator()(std::optional<double>* to) const { *to = to_double(flag, text); }
  void operator()(std::string* to) const {
    check_choice(flag, text);
    *to = text;
  }
  void operator()(std::optional<std::string>* to) const {
    check_choice(flag, text);
    *to = text.empty() ? std::nullopt : std::optional(text);
  }
  void operator()(std::vector<std::string>* to) const {
    *to = text.empty() ? std::vector<std::string>() : split(text, ',');
  }
};

struct Read {
  Plain operator()(const int* from) const { return std::int64_t{*from}; }
  template <class Value>
  Plain operator()(const Value* from) const {
    return *from;
  }
  template <class Value>
  Plain operator()(const std::optional<Value>* from) const {
    return from->has_value() ? (*this)(&**from) : Plain();
  }
};

struct TypeName {
  std::string_view operator()(const bool*) const { return "bool"; }
  std::string_view operator()(const int*) const { return "int"; }
  std::string_view operator()(const std::int64_t*) const { return "int"; }
  std::string_view operator()(const double*) const { return "float"; }
  std::string_view operator()(const std::string*) const { return "string"; }
  std::string_view operator()(const std::vector<std::string>*) const { return "list"; }
  template <class Value>
  std::string_view operator()(const std::optional<Value>*) const {
    return (*this)(static_cast<const Value*>(nullptr));
  }
};

}  // namespace

std::vector<FlagGroup> flag_groups() {
  std::vector<FlagGroup> all = run_flags();
  for (const auto& more : {data_flags(), machine_flags(), learning_flags(), parallel_flags(),
                           runtime_flags(), other_flags()}) {
    all.insert(all.end(), more.begin(), more.end());
  }
  return all;
}

const Flag* find_flag(std::string_view name) {
  for (const FlagGroup& group : flag_groups()) {
    const auto found = std::ranges::find(group.flags, name, &Flag::name);
    if (found != group.flags.end()) {
      return &*found;
    }
  }
  return nullptr;
}

void assign(const Flag& flag, const std::string& text, Config& config) {
  std::visit(Assign{flag, text}, flag.target(config));
}

Plain plain_value(const Flag& flag, const Config& config) {
  Config copy = config;  // a target is made for writing
  return std::visit(Read{}, flag.target(copy));
}

std::string_view type_name(const Flag& flag) {
  Config any;
  return flag.choices.empty() ? std::visit(TypeName{}, flag.target(any)) : "enum";
}

std::string to_text(const Plain& value) {
  struct Text {
    std::string operator()(std::monostate) const { return "None"; }
    std::string operator()(bool yes) const { return yes ? "True" : "False"; }
    std::string operator()(std::int64_t number) const { return fmt::format("{}", number); }
    std::string operator()(double number) const { return shortest(number); }
    std::string operator()(const std::string& text) const { return text; }
    std::string operator()(const std::vector<std::string>& words) const {
      return fmt::format("{}", fmt::join(words, ","));
    }
  };
  return std::visit(Text{}, value);
}

}  // namespace cnn::bench
