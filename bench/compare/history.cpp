#include "bench/compare/history.h"

#include <algorithm>
#include <cmath>
#include <fmt/format.h>
#include <string_view>
#include <utility>

#include "bench/compare/change_points.h"
#include "data/json/parse_json.h"
#include "runtime/error.h"
#include "runtime/median.h"

namespace cnn::compare {
namespace {

constexpr int history_form = 1;
constexpr std::size_t longest_series = 1000;  // runs: the search takes quadratic time

// Sections of a result that identify the configuration and the machine of a run.
constexpr const char* kept_sections[] = {"program", "version", "commit", "started",
                                         "mode",    "batch",   "model",  "machine"};

Run run_of_line(const std::string& where, std::string_view line) {
  Run run{.path = where};
  try {
    run.json = data::parse_json<Json>(line);
  } catch (const data::JsonError& problem) {
    throw Error(problem.cut_off() ? "cut off; was the run killed while it wrote?"
                                  : std::string(problem.what()));
  }
  const Json& json = run.json;
  check(json.is_object() && text_at(json, {"program"}) == "cnn_benchmarks" &&
            json.contains("history"),
        "JSON, but no line of cnn_benchmarks --history");
  try {
    check(json.at("history") == history_form,
          fmt::format("a line of form {}, and this program reads form {}",
                      json.at("history").dump(), history_form));
    const auto seconds = json.at("step_seconds").get<double>();
    check(seconds > 0 && std::isfinite(seconds),
          fmt::format("a line with a damaged value (step_seconds is {:g})", seconds));
    run.images_per_step = json.at("images_per_step").get<double>();
    run.started = text_at(json, {"started"});
    run.steps.push_back({.seconds = seconds, .disturbed = json.value("disturbed", false)});
    add_facts(run);
  } catch (const Json::exception& problem) {
    throw Error(fmt::format("a line with a damaged value ({})", problem.what()));
  }
  return run;
}

std::string commit_of(const Run& run) { return text_at(run.json, {"commit"}); }

double median_between(const std::vector<double>& values, std::size_t begin, std::size_t end) {
  return median({values.begin() + static_cast<std::ptrdiff_t>(begin),
                 values.begin() + static_cast<std::ptrdiff_t>(end)});
}

// Returns the sizes of the changes found; `places` are first runs.
std::vector<double> slowdowns_at(const std::vector<double>& logs,
                                 const std::vector<ChangePoint>& places) {
  std::vector<double> slowdowns;
  for (std::size_t i = 0; i < places.size(); ++i) {
    const std::size_t before = i == 0 ? 0 : places[i - 1].index;
    const std::size_t after = i + 1 == places.size() ? logs.size() : places[i + 1].index;
    slowdowns.push_back(median_between(logs, places[i].index, after) -
                        median_between(logs, before, places[i].index));
  }
  return slowdowns;
}

// Merges segments with too small a change, the smallest first.
void join_small(const std::vector<double>& logs, double minimum_effect,
                std::vector<ChangePoint>& places) {
  while (!places.empty()) {
    const std::vector<double> slowdowns = slowdowns_at(logs, places);
    const auto least =
        std::ranges::min_element(slowdowns, {}, [](double slowdown) { return std::abs(slowdown); });
    if (std::abs(std::expm1(*least)) >= minimum_effect) {
      return;
    }
    places.erase(places.begin() + (least - slowdowns.begin()));
  }
}

void leave_out_disturbed(Series& series) {
  const auto disturbed = static_cast<std::size_t>(std::ranges::count_if(
      series.runs, [](const Run& run) { return run.steps.front().disturbed; }));
  if (disturbed == 0) {
    return;
  }
  if (2 * disturbed > series.runs.size()) {
    series.notes.push_back(fmt::format(
        "Other work disturbed most steps of {} of the {} runs; they count, for too few are left.",
        disturbed, series.runs.size()));
    return;
  }
  series.notes.push_back(
      fmt::format("{} of the {} runs do not count: other work disturbed most of their steps.",
                  disturbed, series.runs.size()));
  std::erase_if(series.runs, [](const Run& run) { return run.steps.front().disturbed; });
}

void leave_out_oldest(Series& series) {
  if (series.runs.size() > longest_series) {
    series.notes.push_back(
        fmt::format("The newest {} of the {} runs count.", longest_series, series.runs.size()));
    series.runs.erase(series.runs.begin(),
                      series.runs.end() - static_cast<std::ptrdiff_t>(longest_series));
  }
}

std::vector<std::string> unlike_beside_commit(const Run& before, const Run& after) {
  std::vector<std::string> lines =
      unlike_surroundings({.label = {}, .base = {before}, .candidate = {after}});
  std::erase_if(lines, [](const std::string& line) { return line.starts_with("commit: "); });
  return lines;
}

std::size_t permutations_for(double significance) {
  return static_cast<std::size_t>(std::ceil(5 / significance)) - 1;
}

// Throws Error with the largest possible confidence if the permutation test would take much longer
// than ten seconds for a change. The default confidence is never refused.
void check_effort(const std::vector<Series>& all, double confidence) {
  constexpr double max_pairs = 1e10;  // of values, in all permutations; a pair takes about 1 ns
  double runs = 0, pairs = 0;
  for (const Series& series : all) {
    const auto count = static_cast<double>(series.runs.size());
    runs += count;
    pairs += count * count;
  }
  const double least = 5 * static_cast<double>(all.size()) * pairs / max_pairs;
  const double digit = std::pow(10, std::floor(std::log10(least)));  // rounds to one digit
  constexpr double slack = 1e-6;                                     // of rounding in percentages
  const double level =
      std::min(1 - Settings{}.confidence, std::ceil(least / digit - slack) * digit);
  check(1 - confidence >= level * (1 - slack),
        fmt::format("--confidence={:.10g}: the permutation test of these {:g} runs would take too "
                    "long; the largest confidence for them is {:.10g}",
                    100 * confidence, runs, 100 * (1 - level)));
}

void search(Series& series, double significance, double minimum_effect) {
  std::vector<double> logs;
  for (const Run& run : series.runs) {
    logs.push_back(std::log(run.steps.front().seconds));
  }
  std::vector<ChangePoint> places = find_changes(
      logs, {.significance = significance, .permutations = permutations_for(significance)});
  join_small(logs, minimum_effect, places);
  const std::vector<double> slowdowns = slowdowns_at(logs, places);
  for (std::size_t i = 0; i < places.size(); ++i) {
    const Run& before = series.runs[places[i].index - 1];
    const Run& after = series.runs[places[i].index];
    series.changes.push_back({.run = places[i].index,
                              .slowdown = slowdowns[i],
                              .p = places[i].p,
                              .before = commit_of(before),
                              .after = commit_of(after),
                              .together = unlike_beside_commit(before, after)});
  }
}

std::string commit_text(const std::string& commit) {
  return commit.empty() ? "no known commit" : "commit " + commit;
}

double images_per_sec(const Run& run) { return run.images_per_step / run.steps.front().seconds; }

}  // namespace

std::string history_line(const Run& run) {
  const RunSummary summary = summarise(run.steps);
  Json line = Json::object();
  for (const char* section : kept_sections) {
    if (run.json.contains(section)) {
      line[section] = run.json.at(section);
    }
  }
  line["history"] = history_form;
  line["config"] = run.json.value("config", Json::object());
  const Json plan = run.json.value("plan", Json::object());
  for (const char* fact : {"precision", "layout"}) {
    if (plan.is_object() && plan.contains(fact)) {
      line["plan"][fact] = plan.at(fact);
    }
  }
  line["images_per_step"] = run.images_per_step;
  line["step_seconds"] = summary.seconds;
  line["timed_steps"] = summary.steps;
  line["disturbed_steps"] = summary.disturbed;
  line["disturbed"] = summary.disturbed_run;
  return line.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n";
}

History parse_history(const std::string& path, const std::string& text) {
  History history;
  std::size_t number = 0;
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t end = std::min(text.find('\n', begin), text.size());
    const std::string_view line = std::string_view(text).substr(begin, end - begin);
    begin = end + 1;
    ++number;
    if (line.find_first_not_of(" \t\r") == std::string_view::npos) {
      continue;
    }
    const std::string where = fmt::format("{}:{}", path, number);
    try {
      history.runs.push_back(run_of_line(where, line));
    } catch (const Error& problem) {
      history.problems.push_back(
          fmt::format("{}: {}; the line is left out", where, problem.what()));
    }
  }
  if (history.runs.empty()) {
    throw Error(history.problems.empty()
                    ? fmt::format("{}: empty; cnn_benchmarks --history={} adds runs", path, path)
                    : fmt::format("{}; there is no other line", history.problems.front()));
  }
  return history;
}

History read_history(const std::string& path) { return parse_history(path, read_text(path)); }

std::vector<Series> find_history(std::vector<Run> runs, const Settings& settings,
                                 bool across_machines) {
  std::vector<Configuration> groups = group_runs(std::move(runs), across_machines);
  const double significance = (1 - settings.confidence) / static_cast<double>(groups.size());
  std::vector<Series> all;
  for (Configuration& group : groups) {
    Series& series = all.emplace_back(Series{.label = std::move(group.label),
                                             .runs = std::move(group.base),
                                             .changes = {},
                                             .min_runs = min_values(significance),
                                             .notes = {}});
    leave_out_disturbed(series);
    leave_out_oldest(series);
  }
  check_effort(all, settings.confidence);
  for (Series& series : all) {
    if (!series.too_short()) {
      search(series, significance, settings.minimum_effect);
    }
  }
  return all;
}

std::string sentence(const Series& series, const SpeedChange& change) {
  const Run& first = series.runs[change.run];
  const double change_percent = percent(change.slowdown);
  std::string text =
      fmt::format("from run {} of {} on ({}, {}) a step takes {:.2f} % {}; the run before has {}",
                  change.run + 1, series.runs.size(), first.started, commit_text(change.after),
                  std::abs(change_percent), change.slowdown > 0 ? "longer" : "less",
                  commit_text(change.before));
  if (!change.after.empty() && change.after == change.before) {
    text += ", so the program is not the cause";
  }
  return text;
}

std::string history_text(const std::vector<Series>& all, const Settings& settings) {
  std::string text;
  for (const Series& series : all) {
    text += fmt::format("{}: {} runs\n", series.label, series.runs.size());
    if (series.too_short()) {
      text += fmt::format(
          "  too short: {} more runs, {} in all, could show a change with {:g} % "
          "confidence\n",
          series.min_runs - series.runs.size(), series.min_runs, 100 * settings.confidence);
    } else if (series.changes.empty()) {
      text += fmt::format("  no change of {:g} % or more\n", 100 * settings.minimum_effect);
    }
    for (const SpeedChange& change : series.changes) {
      text += "  " + sentence(series, change) + "\n";
      for (const std::string& line : change.together) {
        text += "    " + line + "\n";
      }
    }
    for (const std::string& note : series.notes) {
      text += "  " + note + "\n";
    }
  }
  return text;
}

std::string history_json(const std::vector<Series>& all, const Settings& settings) {
  Json list = Json::array();
  for (const Series& series : all) {
    Json runs = Json::array(), changes = Json::array();
    for (const Run& run : series.runs) {
      runs.push_back({{"started", run.started},
                      {"commit", run.json.value("commit", Json())},
                      {"step_seconds", run.steps.front().seconds},
                      {"images_per_sec", images_per_sec(run)}});
    }
    for (const SpeedChange& change : series.changes) {
      changes.push_back({{"run", change.run + 1},
                         {"slower_percent", percent(change.slowdown)},
                         {"p", change.p},
                         {"commit_before", change.before},
                         {"commit", change.after},
                         {"together_with", change.together}});
    }
    list.push_back({{"configuration", series.label},
                    {"too_short", series.too_short()},
                    {"least_runs", series.min_runs},
                    {"runs", runs},
                    {"changes", changes},
                    {"notes", series.notes}});
  }
  const Json json{{"settings",
                   {{"minimum_effect_percent", 100 * settings.minimum_effect},
                    {"confidence_percent", 100 * settings.confidence}}},
                  {"exit_code", exit_code_of(all)},
                  {"configurations", list}};
  return json.dump(1, ' ', false, Json::error_handler_t::replace) + "\n";
}

int exit_code_of(const std::vector<Series>& all) {
  const auto is_slower = [](const Series& series) {
    return !series.changes.empty() && series.changes.back().slowdown > 0;
  };
  if (std::ranges::any_of(all, is_slower)) {
    return 1;
  }
  return std::ranges::any_of(all, &Series::too_short) ? 2 : 0;
}

}  // namespace cnn::compare
