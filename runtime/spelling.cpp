#include "runtime/spelling.h"

#include <algorithm>
#include <numeric>
#include <utility>

namespace cnn {
namespace {

constexpr std::size_t max_suggestions = 3;
constexpr std::size_t shortest_beginning = 3;  // letters; shorter prefixes match too many names

std::string lower_case(std::string_view text) {
  std::string result(text);
  std::ranges::transform(result, result.begin(), [](char c) {
    return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  });
  return result;
}

using Ranked = std::vector<std::pair<std::size_t, std::string>>;  // distance and name

// Names of equal distance keep their order.
std::vector<std::string> nearest(Ranked ranked, bool only_the_first_distance) {
  std::ranges::stable_sort(ranked, {}, [](const auto& entry) { return entry.first; });
  std::vector<std::string> names;
  for (auto& [distance, name] : ranked) {
    const bool wanted = !only_the_first_distance || distance == ranked.front().first;
    if (wanted && names.size() < max_suggestions) {
      names.push_back(std::move(name));
    }
  }
  return names;
}

}  // namespace

// Dynamic programming over three rows of the matrix of distances between beginnings of `a` and `b`:
// a mistyped word from a file may be of any length.
std::size_t edit_distance(std::string_view a, std::string_view b) {
  const std::size_t columns = b.size() + 1;
  std::vector<std::size_t> rows(3 * columns);
  std::size_t* before = rows.data();  // the rows of i - 2, i - 1 and i letters of `a`
  std::size_t* last = before + columns;
  std::size_t* row = last + columns;
  std::iota(row, row + columns, std::size_t{0});
  for (std::size_t i = 1; i <= a.size(); ++i) {
    std::swap(before, last);
    std::swap(last, row);
    row[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const std::size_t change = last[j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1);
      row[j] = std::min({change, last[j] + 1, row[j - 1] + 1});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1]) {
        row[j] = std::min(row[j], before[j - 2] + 1);
      }
    }
  }
  return row[b.size()];
}

std::vector<std::string> similar_names(std::string_view misspelt,
                                       std::span<const std::string> known) {
  const std::string wanted = lower_case(misspelt);
  Ranked beginning;
  Ranked near;
  for (const std::string& name : known) {
    const std::string candidate = lower_case(name);
    const std::size_t distance = edit_distance(wanted, candidate);
    if (wanted.size() >= shortest_beginning && candidate.starts_with(wanted)) {
      beginning.emplace_back(distance, name);
    }
    if (wanted.size() > 1 && distance <= std::max<std::size_t>(1, wanted.size() / 3)) {
      near.emplace_back(distance, name);
    }
  }
  const bool begins = !beginning.empty();
  return nearest(begins ? std::move(beginning) : std::move(near), !begins);
}

std::string did_you_mean(std::string_view misspelt, std::span<const std::string> known) {
  std::string text;
  for (const std::string& name : similar_names(misspelt, known)) {
    text += (text.empty() ? "; did you mean " : ", ") + name;
  }
  return text.empty() ? text : text + "?";
}

}  // namespace cnn
