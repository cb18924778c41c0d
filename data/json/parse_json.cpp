#include "data/json/parse_json.h"

#include <algorithm>
#include <cstddef>
#include <set>
#include <vector>

namespace cnn::data {
namespace {

constexpr int deepest_nesting = 64;  // a result file has 7 levels

// Returns "line 3, column 5" for the byte at that offset, both counted from 1.
std::string position_text(std::string_view text, std::size_t offset) {
  const std::string_view before = text.substr(0, std::min(offset, text.size()));
  const auto line = 1 + std::count(before.begin(), before.end(), '\n');
  const std::size_t line_start = before.rfind('\n') + 1;  // npos + 1 is 0
  return "line " + std::to_string(line) + ", column " +
         std::to_string(before.size() - line_start + 1);
}

// Returns text that may quote the file as one short line.
std::string short_line(std::string_view text) {
  constexpr std::size_t longest = 160;
  std::string line(text.substr(0, longest));
  std::ranges::replace_if(
      line, [](char letter) { return letter < ' ' || letter > '~'; }, '?');
  return text.size() > longest ? line + "..." : line;
}

// Returns the parser's reason without its prefix.
std::string reason_of(const std::exception& problem) {
  std::string_view text = problem.what();
  if (const std::size_t bracket = text.find("] "); bracket != text.npos) {
    text.remove_prefix(bracket + 2);
  }
  if (const std::size_t at = text.find(": "); text.starts_with("parse error") && at != text.npos) {
    text.remove_prefix(at + 2);
  }
  return short_line(text);
}

void check_nesting(std::string_view text) {
  int depth = 0;
  bool in_string = false;
  for (std::size_t at = 0; at < text.size(); ++at) {
    const char letter = text[at];
    if (in_string) {
      at += letter == '\\' ? 1 : 0;
      in_string = letter != '"';
    } else if (letter == '"') {
      in_string = true;
    } else if (letter == '[' || letter == '{') {
      ++depth;
      if (depth > deepest_nesting) {
        throw JsonError("nested more deeply than " + std::to_string(deepest_nesting) +
                            " levels at " + position_text(text, at),
                        false);
      }
    } else if (letter == ']' || letter == '}') {
      --depth;
    }
  }
}

// The parser does not report the position of a number that is too large, but quotes it.
std::size_t offset_of_quoted(std::string_view text, std::string_view message) {
  const std::size_t open = message.find('\''), close = message.rfind('\'');
  return open < close ? text.find(message.substr(open + 1, close - open - 1)) : 0;
}

// Finds keys that an object has twice: the parser would keep one of the values silently.
template <class Json>
class UniqueKeys {
 public:
  // Throws JsonError at the second key. depth: of the parser, which counts objects and arrays.
  void see(int depth, typename Json::parse_event_t event, const Json& value) {
    levels_.resize(std::min(levels_.size(), static_cast<std::size_t>(depth)));
    using Event = typename Json::parse_event_t;
    if (event == Event::object_start || event == Event::array_start) {
      levels_.resize(static_cast<std::size_t>(depth) + 1);
    } else if (event == Event::key) {
      Level& object = levels_.back();
      object.latest = value.template get_ref<const std::string&>();
      if (!object.keys.insert(object.latest).second) {
        throw JsonError("not readable: the key \"" + short_line(path()) + "\" is there twice",
                        false);
      }
    }
  }

 private:
  struct Level {
    std::set<std::string> keys;
    std::string latest;  // empty in an array
  };

  // Returns the keys that lead to the latest one, as "machine.name".
  std::string path() const {
    std::string path;
    for (const Level& level : levels_) {
      path += (path.empty() || level.latest.empty() ? "" : ".") + level.latest;
    }
    return path;
  }

  std::vector<Level> levels_;  // around the current value
};

// Returns a callback that calls `examine`, which must outlive it, and then looks for such keys.
template <class Json>
typename Json::parser_callback_t with_unique_keys(const typename Json::parser_callback_t& examine) {
  return [&examine, keys = UniqueKeys<Json>()](int depth, typename Json::parse_event_t event,
                                               Json& value) mutable {
    const bool keeps = !examine || examine(depth, event, value);
    keys.see(depth, event, value);
    return keeps;
  };
}

}  // namespace

template <class Json>
Json parse_json(std::string_view text, const typename Json::parser_callback_t& examine) {
  check_nesting(text);
  try {
    return Json::parse(text, with_unique_keys<Json>(examine));
  } catch (const typename Json::parse_error& problem) {
    const bool cut_off = text.empty() || problem.byte > text.size();
    const std::size_t offset = problem.byte > 0 ? problem.byte - 1 : 0;
    throw JsonError("not JSON at " + position_text(text, offset) + ": " + reason_of(problem),
                    cut_off);
  } catch (const typename Json::out_of_range& problem) {
    throw JsonError("not readable: a number beyond the range of a double at " +
                        position_text(text, offset_of_quoted(text, problem.what())) + ": " +
                        reason_of(problem),
                    false);
  }
}

template nlohmann::json parse_json<nlohmann::json>(std::string_view,
                                                   const nlohmann::json::parser_callback_t&);
template nlohmann::ordered_json parse_json<nlohmann::ordered_json>(
    std::string_view, const nlohmann::ordered_json::parser_callback_t&);

}  // namespace cnn::data
