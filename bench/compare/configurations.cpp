#include "bench/compare/configurations.h"

#include <algorithm>
#include <array>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <limits>
#include <map>
#include <set>
#include <string_view>
#include <utility>

#include "runtime/error.h"

namespace cnn::compare {
namespace {

using Traits = std::map<std::string, std::string>;

constexpr std::array of_the_machine = {"GPU", "cores", "instruction sets", "processor"};

// Returns the names of traits that both have with different values.
std::vector<std::string> unlike_traits(const Traits& a, const Traits& b) {
  std::vector<std::string> names;
  for (const auto& [name, value] : a) {
    const auto other = b.find(name);
    if (other != b.end() && other->second != value) {
      names.push_back(name);
    }
  }
  return names;
}

void forget_machines(std::vector<Run>& runs) {
  for (Run& run : runs) {
    for (const char* name : of_the_machine) {
      run.identity.erase(name);
    }
  }
}

// Returns whether two files hold the result of one run under different names: copies and links,
// including reformatted ones or ones with an edited flag.
bool is_one_run(const Run& a, const Run& b) {
  if (!a.json.is_null() && a.json == b.json) {
    return true;
  }
  return !a.started.empty() && a.started == b.started && a.surroundings == b.surroundings &&
         a.steps.front().seconds == b.steps.front().seconds;
}

// Returns a message's text for two files with one run.
std::string both_paths(const Run& a, const Run& b) {
  return a.path == b.path ? fmt::format("{} is named twice", a.path)
                          : fmt::format("{} and {} are one run", a.path, b.path);
}

// Finds one run among many without comparing it with each: files of one run agree in its start and
// its first step.
class RunIndex {
 public:
  void add(const Run& run) { runs_[key_of(run)].push_back(&run); }

  // Returns the first added run that is the same run, or null.
  const Run* find(const Run& run) const {
    const auto near = runs_.find(key_of(run));
    if (near == runs_.end()) {
      return nullptr;
    }
    const auto same = std::ranges::find_if(
        near->second, [&run](const Run* other) { return is_one_run(*other, run); });
    return same == near->second.end() ? nullptr : *same;
  }

 private:
  using Key = std::pair<std::string_view, double>;
  static Key key_of(const Run& run) { return {run.started, run.steps.front().seconds}; }

  std::map<Key, std::vector<const Run*>> runs_;
};

RunIndex index_distinct(const std::vector<Run>& runs) {
  RunIndex index;
  for (const Run& run : runs) {
    if (const Run* const other = index.find(run)) {
      throw Error(fmt::format("{}: count it once", both_paths(*other, run)));
    }
    index.add(run);
  }
  return index;
}

void refuse_shared(const RunIndex& base, const std::vector<Run>& candidate) {
  for (const Run& now : candidate) {
    if (const Run* const before = base.find(now)) {
      throw Error(
          fmt::format("{}, once on each side: a run compared with itself shows no regression; "
                      "give each side runs of its own",
                      both_paths(*before, now)));
    }
  }
}

using Group = std::vector<Run>;

std::vector<Group> groups_of(std::vector<Run> runs) {
  std::ranges::stable_sort(runs, {}, &Run::started);
  std::vector<Group> groups;
  for (Run& run : runs) {
    const auto alike = std::ranges::find_if(groups, [&](const Group& group) {
      return unlike_traits(group.front().identity, run.identity).empty();
    });
    if (alike == groups.end()) {
      groups.emplace_back().push_back(std::move(run));
    } else {
      alike->push_back(std::move(run));
    }
  }
  return groups;
}

// Throws Error with the differences from the most similar configuration on the other side.
[[noreturn]] void refuse_alone(const Run& run, const std::vector<Group>& others) {
  const Group* nearest = &others.front();
  std::size_t least = std::numeric_limits<std::size_t>::max();
  for (const Group& other : others) {
    const std::size_t count = unlike_traits(run.identity, other.front().identity).size();
    if (count < least) {
      least = count;
      nearest = &other;
    }
  }
  const Run& other = nearest->front();
  std::vector<std::string> parts;
  for (const std::string& name : unlike_traits(run.identity, other.identity)) {
    parts.push_back(
        fmt::format("{} ({} and {})", name, run.identity.at(name), other.identity.at(name)));
  }
  throw Error(fmt::format("not comparable: {} and {} differ in {}", run.path, other.path,
                          fmt::join(parts, ", ")));
}

std::string shown(const std::string& name, const std::string& value) {
  if (name == "model") {
    return value;
  }
  if (name == "images per step") {
    return value + " images";
  }
  return name.starts_with("--") ? name + "=" + value : name + " " + value;
}

// Labels configurations by model, batch and their distinguishing traits. The model's name implies
// its own traits.
void add_labels(std::vector<Configuration>& all) {
  std::set<std::string> apart;
  for (const Configuration& one : all) {
    for (const std::string& name :
         unlike_traits(all.front().base.front().identity, one.base.front().identity)) {
      apart.insert(name);
    }
  }
  const bool several_models = apart.contains("model") || apart.contains("--model");
  for (const char* implied : {"model", "images per step", "--model"}) {
    apart.erase(implied);
  }
  if (several_models) {
    apart.erase("trainable parameters");
    apart.erase("image size");
  }
  for (Configuration& one : all) {
    const Traits& traits = one.base.front().identity;
    std::vector<std::string> parts{
        shown("model", traits.contains("model") ? traits.at("model") : "unknown"),
        shown("images per step", traits.at("images per step"))};
    for (const std::string& name : apart) {
      if (const auto found = traits.find(name); found != traits.end()) {
        parts.push_back(shown(name, found->second));
      }
    }
    one.label = fmt::format("{}", fmt::join(parts, ", "));
  }
}

}  // namespace

std::vector<Configuration> find_configurations(std::vector<Run> base, std::vector<Run> candidate,
                                               bool across_machines) {
  check(!base.empty() && !candidate.empty(),
        "nothing to compare: give files on both sides, BASE.json... -- NEW.json...");
  const RunIndex indexed = index_distinct(base);
  index_distinct(candidate);
  refuse_shared(indexed, candidate);
  if (across_machines) {
    forget_machines(base);
    forget_machines(candidate);
  }
  std::vector<Group> bases = groups_of(std::move(base)), news = groups_of(std::move(candidate));
  std::vector<Configuration> all;
  std::vector<bool> taken(news.size(), false);
  for (const Group& group : bases) {
    std::size_t partner = 0;
    while (partner < news.size() &&
           (taken[partner] ||
            !unlike_traits(group.front().identity, news[partner].front().identity).empty())) {
      ++partner;
    }
    if (partner == news.size()) {
      refuse_alone(group.front(), news);
    }
    taken[partner] = true;
    all.push_back({.base = group, .candidate = news[partner]});
  }
  const auto alone = std::ranges::find(taken, false);
  if (alone != taken.end()) {
    refuse_alone(news[static_cast<std::size_t>(alone - taken.begin())].front(), bases);
  }
  add_labels(all);
  return all;
}

std::vector<Configuration> group_runs(std::vector<Run> runs, bool across_machines) {
  check(!runs.empty(), "no runs: give result files, RUN.json...");
  index_distinct(runs);
  if (across_machines) {
    forget_machines(runs);
  }
  std::vector<Configuration> all;
  for (Group& group : groups_of(std::move(runs))) {
    all.push_back({.label = {}, .base = std::move(group), .candidate = {}});
  }
  add_labels(all);
  return all;
}

std::vector<std::string> unlike_surroundings(const Configuration& configuration) {
  std::map<std::string, std::pair<std::set<std::string>, std::set<std::string>>> values;
  for (const Run& run : configuration.base) {
    for (const auto& [name, value] : run.surroundings) {
      values[name].first.insert(value);
    }
  }
  for (const Run& run : configuration.candidate) {
    for (const auto& [name, value] : run.surroundings) {
      values[name].second.insert(value);
    }
  }
  std::vector<std::string> lines;
  for (const auto& [name, sides] : values) {
    if (sides.first != sides.second && !sides.first.empty() && !sides.second.empty()) {
      lines.push_back(fmt::format("{}: {} before, {} now", name, fmt::join(sides.first, " and "),
                                  fmt::join(sides.second, " and ")));
    }
  }
  return lines;
}

}  // namespace cnn::compare
