#include "bench/flags/help.h"

#include <algorithm>
#include <cstddef>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <functional>
#include <iterator>
#include <sstream>
#include <string_view>
#include <vector>

#include "bench/flags/completion.h"
#include "bench/flags/flag_table.h"
#include "bench/flags/help_parts.h"
#include "bench/flags/manual_page.h"
#include "runtime/error.h"
#include "runtime/spelling.h"

namespace cnn::bench {
namespace {

constexpr std::size_t help_width = 98;
constexpr std::string_view help_title =
    "cnn_benchmarks: train convolutional networks and report images/sec\n";

// Wraps words into lines that begin with the indentation, each ending with a line break.
std::string wrapped(std::string_view words, std::size_t indentation) {
  std::istringstream text{std::string(words)};
  std::string lines;
  std::string line(indentation, ' ');
  for (std::string word; text >> word;) {
    if (line.size() > indentation && line.size() + 1 + word.size() > help_width) {
      lines += line + "\n";
      line.assign(indentation, ' ');
    }
    line += (line.size() > indentation ? " " : "") + word;
  }
  return lines + line + "\n";
}

std::string help_of(const Flag& flag) {
  return fmt::format("  --{} ({}; default {})\n{}", flag.name, value_text(flag), default_text(flag),
                     wrapped(description_of(flag), 6));
}

std::string exit_status_text() {
  std::string text = "\nExit status:\n";
  for (const HelpEntry& status : exit_statuses()) {
    text += fmt::format("  {:<5} {}\n", status.term, status.text);
  }
  return text;
}

std::string environment_text() {
  std::string text = "\nEnvironment variables:\n";
  for (const HelpEntry& variable : environment_variables()) {
    text += wrapped(variable.term, 2) + wrapped(variable.text, 8);
  }
  return text;
}

std::string example_text() {
  std::string text = "\nExamples:\n";
  for (const HelpEntry& example : help_examples()) {
    text += fmt::format("  {}\n      {}\n", example.term, example.text);
  }
  return text;
}

std::vector<std::string> words_in(std::string_view text) {
  std::istringstream stream{std::string(text)};
  return {std::istream_iterator<std::string>(stream), {}};
}

std::string essential_text(const std::function<std::string(const Flag&)>& line) {
  std::string text;
  for (const HelpEntry& heading : essential_flags()) {
    text += fmt::format("\n{}:\n", heading.term);
    for (const std::string& name : words_in(heading.text)) {
      text += line(*find_flag(name));
    }
  }
  return text;
}

std::vector<std::string> group_names() {
  std::vector<std::string> names;
  for (const FlagGroup& group : flag_groups()) {
    names.emplace_back(group.name);
  }
  return names;
}

std::string where_the_others_are() {
  return "\nAll flags: --helpfull. Those of a group, or those that mention a word: --help=WORD.\n" +
         wrapped(fmt::format("Groups: {}.", fmt::join(group_names(), ", ")), 0);
}

std::string usual_help() {
  return std::string(help_title) + example_text() + essential_text(help_of) + exit_status_text() +
         where_the_others_are();
}

std::string brief_help() {
  return std::string(help_title) + essential_text([](const Flag& flag) {
           const std::string_view first_part = flag.help.substr(0, flag.help.find(';'));
           std::string line = wrapped(first_part, 24);
           return line.replace(0, 24, fmt::format("  --{:<19} ", flag.name));
         });
}

using Wanted = std::function<bool(const FlagGroup&, const Flag&)>;

// Returns the wanted flags by group; flags without effect come last, in one block.
std::string chosen_flags(const Wanted& wanted) {
  std::string text;
  std::string without_effect;
  for (const FlagGroup& group : flag_groups()) {
    std::string body;
    for (const Flag& flag : group.flags) {
      if (wanted(group, flag)) {
        (acts(flag) ? body : without_effect) += help_of(flag);
      }
    }
    text += body.empty() ? "" : fmt::format("\n{}:\n{}", group.title, body);
  }
  return without_effect.empty()
             ? text
             : text + "\nFlags of the original without effect here:\n" + without_effect;
}

bool contains(std::string_view text, std::string_view word) {
  const auto lower = [](char c) { return c >= 'A' && c <= 'Z' ? c - 'A' + 'a' : int{c}; };
  const auto same = [&](char a, char b) { return lower(a) == lower(b); };
  return std::search(text.begin(), text.end(), word.begin(), word.end(), same) != text.end();
}

// A group name also selects the groups that begin with it: lms selects lms_policies too.
std::string help_about(const std::string& topic) {
  const std::vector<std::string> names = group_names();
  const bool is_group = std::ranges::find(names, topic) != names.end();
  const std::string text = chosen_flags([&](const FlagGroup& group, const Flag& flag) {
    return is_group ? group.name == topic || group.name.starts_with(topic + "_")
                    : contains(flag.name, topic) || contains(flag.help, topic);
  });
  check(!text.empty(),
        fmt::format("--help={}: no flag mentions it and no group has that name; groups are {}{}",
                    topic, fmt::join(names, ", "), did_you_mean(topic, names)));
  return std::string(help_title) + text;
}

std::string full_help() {
  return std::string(help_title) + example_text() +
         chosen_flags([](const FlagGroup&, const Flag&) { return true; }) + exit_status_text() +
         environment_text();
}

}  // namespace

std::string help_text(const HelpFlags& help) {
  switch (help.format) {
    case HelpFormat::man:
      return manual_page();
    case HelpFormat::bash:
      return bash_completion();
    case HelpFormat::text:
      break;
  }
  if (help.full) {
    return full_help();
  }
  if (help.topic) {
    return help_about(*help.topic);
  }
  return help.usual ? usual_help() : brief_help();
}

}  // namespace cnn::bench
