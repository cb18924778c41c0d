#include "runtime/spelling.h"

#include <algorithm>
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

std::size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<std::vector<std::size_t>> cost(a.size() + 1, std::vector<std::size_t>(b.size() + 1));
  for (std::size_t i = 0; i <= a.size(); ++i) {
    for (std::size_t j = 0; j <= b.size(); ++j) {
      if (i == 0 || j == 0) {
        cost[i][j] = i + j;
        continue;
      }
      const std::size_t change = cost[i - 1][j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1);
      cost[i][j] = std::min({change, cost[i - 1][j] + 1, cost[i][j - 1] + 1});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1]) {
        cost[i][j] = std::min(cost[i][j], cost[i - 2][j - 2] + 1);
      }
    }
  }
  return cost[a.size()][b.size()];
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
