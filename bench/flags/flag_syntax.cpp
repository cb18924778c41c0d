#include "bench/flags/flag_syntax.h"

#include <algorithm>
#include <cstddef>
#include <filesystem>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <fstream>
#include <optional>

#include "bench/flags/flag_table.h"
#include "bench/flags/older_flags.h"
#include "runtime/error.h"
#include "runtime/spelling.h"

namespace cnn::bench {

namespace {

constexpr int deepest_flag_file = 16;  // deeper nesting means a file that includes itself

[[noreturn]] void refuse(std::string_view why) {
  throw Error(fmt::format("FATAL Flags parsing error: {}", why));
}

std::string_view without_dashes(std::string_view word) {
  word.remove_prefix(std::min(word.find_first_not_of('-'), word.size()));
  return word;
}

// The parts of --x=v; no value without an equals sign.
struct Part {
  std::string name;
  std::optional<std::string> value;
};

Part take_apart(std::string_view word) {
  const std::string_view bare = without_dashes(word);
  const std::size_t equals = bare.find('=');
  if (equals == std::string_view::npos) {
    return {std::string(bare), std::nullopt};
  }
  return {std::string(bare.substr(0, equals)), std::string(bare.substr(equals + 1))};
}

std::vector<std::string> read_lines(const std::string& path) {
  if (std::filesystem::is_directory(path)) {
    refuse(fmt::format("--flagfile={} is a folder; name a file in it", path));
  }
  std::ifstream file(path);
  if (!file) {
    refuse(fmt::format("cannot read --flagfile={}", path));
  }
  std::vector<std::string> lines;
  for (std::string line; std::getline(file, line);) {
    const std::size_t begin = line.find_first_not_of(" \t\r");
    if (begin == std::string::npos) {
      continue;
    }
    line = line.substr(begin, line.find_last_not_of(" \t\r") + 1 - begin);
    if (!line.starts_with('#') && !line.starts_with("//")) {
      lines.push_back(line);
    }
  }
  return lines;
}

bool looks_like_flag(std::string_view word) {
  return word.starts_with('-') && !without_dashes(word).empty();
}

bool takes_next_word(const Part& word) {
  if (word.value) {
    return false;
  }
  const Flag* flag = find_flag(word.name);
  return flag != nullptr && type_name(*flag) != "bool";
}

void expand(std::span<const std::string> words, int depth, std::vector<std::string>& out) {
  if (depth > deepest_flag_file) {
    refuse(fmt::format("flag files nest more than {} deep; one of them may include itself",
                       deepest_flag_file));
  }
  for (std::size_t i = 0; i < words.size(); ++i) {
    const Part word = take_apart(words[i]);
    if (!looks_like_flag(words[i])) {  // the rest is not a flag: keep it unchanged
      out.insert(out.end(), words.begin() + static_cast<std::ptrdiff_t>(i), words.end());
      return;
    }
    const bool next = takes_next_word(word) && i + 1 < words.size();
    if (word.name == "flagfile") {
      if (!word.value && !next) {
        refuse("Missing value for flag --flagfile");
      }
      expand(read_lines(word.value ? *word.value : words[i + 1]), depth + 1, out);
    } else {
      out.push_back(words[i]);
      if (next) {
        out.push_back(words[i + 1]);
      }
    }
    i += next ? 1 : 0;
  }
}

void check_unknown(std::span<const std::string> unknown, std::span<const std::string> tolerated) {
  for (const std::string& name : unknown) {
    const auto names_it = [&](std::string_view good) {
      return name == good || (name.starts_with("no") && name.substr(2) == good);
    };
    if (std::ranges::any_of(tolerated, names_it)) {
      continue;
    }
    if (const std::string_view successor = successor_of(name); !successor.empty()) {
      refuse(fmt::format("--{} is a flag of other releases: {}", name, successor));
    }
    const std::vector<std::string> similar = similar_flags(name);
    const std::string hint =
        similar.empty() ? "" : fmt::format(" Did you mean: --{} ?", fmt::join(similar, ", --"));
    refuse(fmt::format("Unknown command line flag '{}'.{}", name, hint));
  }
}

// Returns the value of a known flag; `next` is the following word, if any, and is consumed by
// emptying it.
std::string value_of(const Flag& flag, const Part& word, std::optional<std::string>& next) {
  if (word.value) {
    next.reset();
    return *word.value;
  }
  if (type_name(flag) == "bool") {
    next.reset();
    return "true";
  }
  if (!next) {
    refuse(fmt::format("Missing value for flag --{}", flag.name));
  }
  return *next;
}

// Returns the switch x for --nox if x is known and nox is not.
const Flag* find_negated(const Part& word) {
  const Flag* flag =
      word.name.starts_with("no") ? find_flag(std::string_view(word.name).substr(2)) : nullptr;
  if (flag == nullptr || type_name(*flag) != "bool") {
    return nullptr;
  }
  if (word.value) {
    refuse(fmt::format("--{} does not take an argument", word.name));
  }
  return flag;
}

// Returns the distance of a name that a misspelt one may mean: one that begins with it, or that
// differs in at most a third of its characters.
std::optional<std::size_t> distance_if_near(std::string_view misspelt, std::string_view name) {
  const bool begins = misspelt.size() >= 3 && name.starts_with(misspelt);
  // The distance is at least the difference of the lengths.
  const std::size_t longer = std::max(name.size(), misspelt.size());
  if (!begins && 3 * (longer - std::min(name.size(), misspelt.size())) > misspelt.size()) {
    return std::nullopt;
  }
  const std::size_t distance = edit_distance(misspelt, name);
  return begins || 3 * distance <= misspelt.size() ? std::optional(distance) : std::nullopt;
}

}  // namespace

std::vector<std::string> expand_flag_files(std::span<const std::string> words) {
  std::vector<std::string> out;
  expand(words, 0, out);
  return out;
}

Arguments read_arguments(std::span<const std::string> words) {
  Arguments result;
  std::vector<std::string> unknown;
  std::vector<std::string> tolerated;
  std::size_t i = 0;
  for (; i < words.size() && looks_like_flag(words[i]); ++i) {
    const Part word = take_apart(words[i]);
    if (const Flag* flag = find_flag(word.name)) {
      std::optional<std::string> next;
      if (i + 1 < words.size()) {
        next = words[i + 1];
      }
      result.flags.emplace_back(flag->name, value_of(*flag, word, next));
      i += next ? 1 : 0;
      if (flag->name == "undefok") {
        tolerated =
            std::get<std::vector<std::string>>(parse_value(*flag, result.flags.back().second));
      }
    } else if (const Flag* negated = find_negated(word)) {
      result.flags.emplace_back(negated->name, "false");
    } else {
      unknown.push_back(word.name);
    }
  }
  check_unknown(unknown, tolerated);
  i += i < words.size() && words[i] == "--" ? 1 : 0;
  result.positional.assign(words.begin() + static_cast<std::ptrdiff_t>(i), words.end());
  return result;
}

// Returns known flags of several words that become the misspelt one by another word among them:
// lms_slices for lms_batch_slices.
std::vector<std::string> flags_with_a_word_less(std::string_view misspelt) {
  std::vector<std::string> names;
  for (std::size_t begin = 0; begin < misspelt.size();) {
    const std::size_t end = std::min(misspelt.find('_', begin), misspelt.size());
    std::string name(misspelt);
    // The last word goes with the underscore before it.
    name.erase(end == misspelt.size() && begin > 0 ? begin - 1 : begin, end + 1 - begin);
    if (name.find('_') != name.npos && find_flag(name) != nullptr &&
        std::ranges::find(names, name) == names.end()) {
      names.push_back(std::move(name));
    }
    begin = end + 1;
  }
  return names;
}

std::vector<std::string> similar_flags(std::string_view misspelt) {
  constexpr std::size_t most = 3;
  std::vector<std::pair<std::size_t, std::string>> near;  // distance and name
  const auto consider = [&](const std::string& name) {
    if (const std::optional<std::size_t> distance = distance_if_near(misspelt, name)) {
      near.emplace_back(*distance, name);
    }
  };
  for (const FlagGroup& group : flag_groups()) {
    for (const Flag& flag : group.flags) {
      consider(std::string(flag.name));
      if (misspelt.starts_with("no") && type_name(flag) == "bool") {
        consider(fmt::format("no{}", flag.name));
      }
    }
  }
  std::ranges::sort(near);
  std::vector<std::string> names = flags_with_a_word_less(misspelt);
  for (const auto& [distance, name] : near) {
    if (distance == near.front().first && std::ranges::find(names, name) == names.end()) {
      names.push_back(name);
    }
  }
  names.resize(std::min(names.size(), most));
  return names;
}

}  // namespace cnn::bench
