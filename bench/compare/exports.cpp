#include "bench/compare/exports.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <map>
#include <utility>

#include "bench/compare/configurations.h"
#include "runtime/error.h"
#include "runtime/median.h"

namespace cnn::compare {
namespace {

constexpr std::array<std::string_view, 3> format_names{"bencher", "github-action-benchmark", "csv"};
constexpr std::array<std::string_view, 2> measure_names{"images_per_sec", "step_seconds"};

template <class Enum, std::size_t count>
Enum find_name(const std::array<std::string_view, count>& names, std::string_view name,
               std::string_view flag) {
  const auto found = std::ranges::find(names, name);
  check(found != names.end(),
        fmt::format("--{}={}: there are {}", flag, name, fmt::join(names, ", ")));
  return static_cast<Enum>(found - names.begin());
}

// The median of a configuration's runs and their range.
struct Spread {
  double value = 0, lower = 0, upper = 0;
};

Spread spread_of(std::vector<double> values) {
  const auto [lower, upper] = std::ranges::minmax(values);
  return {.value = median(std::move(values)), .lower = lower, .upper = upper};
}

std::string trait(const Run& run, const char* name) {
  const auto found = run.identity.find(name);
  return found == run.identity.end() ? std::string() : found->second;
}

std::string name_of(const Run& run) {
  std::vector<std::string> parts{trait(run, "model")};
  const auto add = [&parts](const std::string& text, const char* behind = "") {
    if (!text.empty() && text != "none") {
      parts.push_back(text + behind);
    }
  };
  add(trait(run, "data set"));
  add(trait(run, "images per step"), " images");
  add(trait(run, "precision"));
  const bool on_gpu = !trait(run, "GPU").empty() && trait(run, "GPU") != "none";
  add(on_gpu ? trait(run, "GPU") : trait(run, "processor"));
  add(on_gpu ? std::string() : trait(run, "cores"), " cores");
  return fmt::format("{}", fmt::join(parts, ", "));
}

// One configuration of the call, with its name.
struct Benchmark {
  std::string name;
  std::vector<Run> runs;
  Spread seconds, images_per_sec;
};

std::vector<Benchmark> benchmarks_of(std::vector<Run> runs) {
  std::vector<Benchmark> all;
  std::map<std::string, int> names;
  std::vector<Configuration> groups = group_runs(std::move(runs), false);
  for (const Configuration& group : groups) {
    ++names[name_of(group.base.front())];
  }
  for (Configuration& group : groups) {
    std::vector<double> seconds, speeds;
    for (const Run& run : group.base) {
      seconds.push_back(summarise(run.steps).seconds);
      speeds.push_back(run.images_per_step / seconds.back());
    }
    std::string name = name_of(group.base.front());
    if (names.at(name) > 1) {  // flags distinguish them
      name += " (" + group.label + ")";
    }
    all.push_back({std::move(name), std::move(group.base), spread_of(std::move(seconds)),
                   spread_of(std::move(speeds))});
  }
  return all;
}

// Bencher Metric Format: the built-in measures are latency in nanoseconds and throughput per
// second.
std::string bencher_text(const std::vector<Benchmark>& all) {
  constexpr double nanoseconds = 1e9;
  const auto metric = [](const Spread& spread, double unit) -> Json {
    return {{"value", unit * spread.value},
            {"lower_value", unit * spread.lower},
            {"upper_value", unit * spread.upper}};
  };
  Json json = Json::object();
  for (const Benchmark& benchmark : all) {
    json[benchmark.name] = {{"latency", metric(benchmark.seconds, nanoseconds)},
                            {"throughput", metric(benchmark.images_per_sec, 1)}};
  }
  return json.dump(1, ' ', false, Json::error_handler_t::replace) + "\n";
}

std::string extra_of(const Benchmark& benchmark) {
  const Run& newest = benchmark.runs.back();
  const std::string commit = text_at(newest.json, {"commit"});
  return fmt::format("{} run{}{}{}", benchmark.runs.size(), benchmark.runs.size() == 1 ? "" : "s",
                     newest.started.empty() ? "" : ", the last of " + newest.started,
                     commit.empty() ? "" : ", commit " + commit);
}

std::string action_text(const std::vector<Benchmark>& all, Measure measure) {
  Json json = Json::array();
  for (const Benchmark& benchmark : all) {
    const bool speed = measure == Measure::images_per_sec;
    const Spread& spread = speed ? benchmark.images_per_sec : benchmark.seconds;
    json.push_back({{"name", benchmark.name},
                    {"unit", speed ? "images/sec" : "seconds"},
                    {"value", spread.value},
                    {"range", fmt::format("{:g} to {:g}", spread.lower, spread.upper)},
                    {"extra", extra_of(benchmark)}});
  }
  return json.dump(1, ' ', false, Json::error_handler_t::replace) + "\n";
}

// Quotes a cell by RFC 4180.
std::string cell(const std::string& text) {
  if (text.find_first_of("\",\r\n") == std::string::npos) {
    return text;
  }
  std::string quoted = "\"";
  for (const char letter : text) {
    quoted += letter == '"' ? std::string("\"\"") : std::string(1, letter);
  }
  return quoted + '"';
}

std::string csv_text(const std::vector<Benchmark>& all) {
  std::string text =
      "benchmark,started,commit,version,host,images_per_sec,step_seconds,steps,disturbed_steps,"
      "file\n";
  for (const Benchmark& benchmark : all) {
    for (const Run& run : benchmark.runs) {
      const RunSummary summary = summarise(run.steps);
      text += fmt::format(
          "{},{},{},{},{},{},{},{},{},{}\n", cell(benchmark.name), cell(run.started),
          cell(text_at(run.json, {"commit"})), cell(text_at(run.json, {"version"})),
          cell(text_at(run.json, {"machine", "host"})), run.images_per_step / summary.seconds,
          summary.seconds, summary.steps, summary.disturbed, cell(run.path));
    }
  }
  return text;
}

}  // namespace

ExportFormat export_format(std::string_view name) {
  return find_name<ExportFormat>(format_names, name, "export");
}

Measure measure_of(std::string_view name) {
  return find_name<Measure>(measure_names, name, "measure");
}

std::string export_text(std::vector<Run> runs, ExportFormat format, Measure measure) {
  const std::vector<Benchmark> all = benchmarks_of(std::move(runs));
  switch (format) {
    case ExportFormat::bencher:
      return bencher_text(all);
    case ExportFormat::github_action_benchmark:
      return action_text(all, measure);
    case ExportFormat::csv:
      break;
  }
  return csv_text(all);
}

}  // namespace cnn::compare
