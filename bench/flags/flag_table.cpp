#include "bench/flags/flag_table.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <type_traits>

#include "bench/flags/number_text.h"
#include "bench/flags/older_flags.h"
#include "runtime/error.h"
#include "runtime/spelling.h"

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
  const std::vector<std::string> words = choices_of(flag);
  if (words.empty() || std::ranges::find(words, text) != words.end()) {
    return;
  }
  const auto same = std::ranges::find_if(
      words, [&](const std::string& word) { return lower(word) == lower(text); });
  const std::string hint = same == words.end()
                               ? did_you_mean(text, words)
                               : fmt::format(" (upper and lower case differ: {} ?)", *same);
  refuse(flag, text, fmt::format("value should be one of <{}>{}", fmt::join(words, "|"), hint));
}

template <class Number>
Number in_range(const Flag& flag, const std::string& text, Number number) {
  const auto value = static_cast<double>(number);
  if (value < flag.range.at_least) {
    refuse(flag, text, fmt::format("must be {} or more", flag.range.at_least));
  }
  if (value > flag.range.at_most) {
    refuse(flag, text, fmt::format("must be {} or less", flag.range.at_most));
  }
  if (flag.range.below && value >= *flag.range.below) {
    refuse(flag, text, fmt::format("must be less than {}", *flag.range.below));
  }
  return number;
}

bool to_bool(const Flag& flag, const std::string& text) {
  const std::optional<bool> yes = read_switch(text);
  if (!yes) {
    refuse(flag, text, "a switch takes true, t, 1, false, f or 0");
  }
  return *yes;
}

template <class Integer>
std::int64_t to_integer(const Flag& flag, const std::string& text,
                        std::optional<Integer> (*read)(std::string_view)) {
  const std::optional<Integer> number = read(text);
  if (!number) {
    refuse(flag, text,
           fmt::format("not a whole number of {} bits in decimal digits", sizeof(Integer) * 8));
  }
  return in_range(flag, text, *number);
}

double to_double(const Flag& flag, const std::string& text) {
  const std::optional<double> number = read_float(text);
  if (!number) {
    refuse(flag, text, "not a finite number");
  }
  return in_range(flag, text, *number);
}

// Making a Config costs as much as reading hundreds of its members.
const Config& default_config() {
  static const Config config;
  return config;
}

bool is_unset_by_default(const Flag& flag) {
  return flag.member != nullptr ? flag.member->load(default_config()) == Plain()
                                : flag.usual == "None";
}

// Upstream treats an empty path as unset.
Plain to_words(const Flag& flag, const std::string& text) {
  check_choice(flag, text);
  return text.empty() && is_unset_by_default(flag) ? Plain() : Plain(text);
}

template <class Read>
Plain to_list(const Flag& flag, const std::string& text, Read read, std::string_view wanted) {
  const std::vector<std::string> words =
      text.empty() ? std::vector<std::string>() : split(text, ',');
  for (const std::string& word : words) {
    if (!read(word)) {
      refuse(flag, text, fmt::format("must be {} with commas between", wanted));
    }
  }
  return words;
}

}  // namespace

std::span<const FlagGroup> flag_groups() {
  static const std::vector<FlagGroup> groups = [] {
    std::vector<FlagGroup> all;
    for (const auto& more : {run_flags(), data_flags(), machine_flags(), learning_flags(),
                             parallel_flags(), lms_flags(), runtime_flags(), other_flags()}) {
      all.insert(all.end(), more.begin(), more.end());
    }
    return all;
  }();
  return groups;
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

const Flag& meant_by(const Flag& flag) {
  return flag.renamed_to.empty() ? flag : *find_flag(flag.renamed_to);
}

Type type_of(const Flag& flag) {
  const Flag& meant = meant_by(flag);
  return meant.member != nullptr ? meant.member->type : meant.type;
}

std::string_view type_name(const Flag& flag) {
  if (!choices_of(flag).empty()) {
    return "enum";
  }
  switch (type_of(flag)) {
    case Type::boolean:
      return "bool";
    case Type::integer:
    case Type::long_integer:
      return "int";
    case Type::real:
      return "float";
    case Type::text:
      return "string";
    case Type::integers:
    case Type::reals:
    case Type::texts:
      return "list";
  }
  throw Error("not a type");
}

std::vector<std::string> choices_of(const Flag& flag) {
  const Flag& meant = meant_by(flag);
  if (!meant.choices.empty()) {
    return split(meant.choices, '|');
  }
  return meant.member != nullptr ? meant.member->words() : std::vector<std::string>();
}

Plain default_value(const Flag& flag) {
  const Flag& meant = meant_by(flag);
  if (meant.member != nullptr) {
    return meant.member->load(default_config());
  }
  return meant.usual == "None" ? Plain() : parse_value(meant, std::string(meant.usual));
}

Plain parse_value(const Flag& flag, const std::string& text) {
  if (const std::string_view advice = successor_of_value(flag.name, text); !advice.empty()) {
    refuse(flag, text, advice);
  }
  switch (type_of(flag)) {
    case Type::boolean:
      return to_bool(flag, text);
    case Type::integer:
      return to_integer(flag, text, read_integer_of_32_bits);
    case Type::long_integer:
      return to_integer(flag, text, read_integer);
    case Type::real:
      return to_double(flag, text);
    case Type::text:
      return to_words(flag, text);
    case Type::integers:
      return to_list(flag, text, read_integer, "whole numbers");
    case Type::reals:
      return to_list(flag, text, read_float, "numbers");
    case Type::texts:
      return to_list(
          flag, text, [](const std::string&) { return true; }, "words");
  }
  throw Error("not a type");
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
