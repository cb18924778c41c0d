#include "bench/compare/run.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <fmt/format.h>
#include <fstream>
#include <iterator>
#include <string_view>

#include "data/json/parse_json.h"
#include "runtime/error.h"
#include "runtime/median.h"

namespace cnn::compare {
namespace {

constexpr std::size_t min_undisturbed = 5;

// Flags of file names, length and output: they change no step. Sizes and precision are compared by
// their effective values, not as requested.
constexpr std::array flags_of_no_step = {
    "allow_growth",
    "batch_size",
    "benchmark_log_dir",
    "benchmark_test_id",
    "data_name",
    "display_every",
    "display_perf_ewma",
    "eval_dir",
    "flagfile",
    "graph_file",
    "help",
    "help_format",
    "helpfull",
    "helpshort",
    "helpxml",
    "history",
    "html_report",
    "image_size",
    "lms_debug",
    "lms_debug_level",
    "lms_plan_out",
    "lms_stats",
    "lms_stats_average",
    "lms_trace",
    "list_models",
    "log_dir",
    "loss_type_to_report",
    "max_ckpts_to_keep",
    "measure_ceilings",
    "min_time",
    "num_batches",
    "num_epochs",
    "num_warmup_batches",
    "output_dir",
    "plan_cache",
    "print_plan",
    "result_json",
    "save_model_secs",
    "save_model_steps",
    "steps_csv",
    "take_turns",
    "tfprof_file",
    "trace_file",
    "train_dir",
    "undefok",
    "verbosity",
    "version",
};

[[noreturn]] void refuse_file(const std::string& path, std::string_view why) {
  throw Error(fmt::format("{}: {}", path, why));
}

std::string text_of(const Json& value) {
  return value.is_string() ? value.get<std::string>() : value.dump();
}

void check_form(const std::string& path, const Json& json) {
  if (!json.is_object() || text_at(json, {"program"}) != "cnn_benchmarks") {
    refuse_file(path, "JSON, but no result of cnn_benchmarks; write one with --result_json");
  }
  const Json form = json.value("format", Json(1));
  if (!form.is_number_integer() || form < 1 || form > newest_format) {
    refuse_file(path, fmt::format("a result of form {}, and this program reads 1 to {}; take the "
                                  "cnn_compare of the build that wrote it",
                                  form.dump(), newest_format));
  }
  if (json.contains("error")) {
    refuse_file(path, "the run failed: " + text_at(json, {"error"}));
  }
  if (!json.contains("steps") || !json.at("steps").is_array() || json.at("steps").empty()) {
    refuse_file(path, "a result without timed steps; a simulation, a search and --eval have none");
  }
}

bool was_profiled(const Json& row) { return row.value("profiled", false); }

void add_steps(Run& run) {
  const Json& rows = run.json.at("steps");
  // Profiled steps are slightly slower, so they are excluded unless all steps were profiled.
  const bool all = std::ranges::all_of(rows, was_profiled);
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const Json& row = rows[i];
    if (!all && was_profiled(row)) {
      continue;
    }
    const TimedStep step{.seconds = row.at("seconds").get<double>(),
                         .disturbed = row.value("disturbed", false),
                         .ended = row.value("ended", 0.0)};
    if (!(step.seconds > 0) || std::isinf(step.seconds)) {
      refuse_file(run.path, fmt::format("a result with a damaged step: step {} took {:g} seconds",
                                        row.value("step", i + 1), step.seconds));
    }
    run.steps.push_back(step);
  }
  const Json& first = rows.front();
  run.images_per_step =
      std::round(first.at("images_per_sec").get<double>() * first.at("seconds").get<double>());
}

void add_identity(Run& run) {
  const Json& json = run.json;
  const auto add = [&run](const char* name, std::string text) {
    if (!text.empty()) {
      run.identity.emplace(name, std::move(text));
    }
  };
  add("model", text_at(json, {"model", "name"}));
  add("data set", text_at(json, {"model", "data_set"}));
  add("image size", text_at(json, {"model", "image_size"}));
  add("trainable parameters", text_at(json, {"model", "trainable_parameters"}));
  add("images per step", fmt::format("{:.0f}", run.images_per_step));
  add("precision", text_at(json, {"plan", "precision"}));
  const std::string gpu = text_at(json, {"machine", "gpu", "name"});
  add("GPU", gpu.empty() ? "none" : gpu);
  add("processor", text_at(json, {"machine", "cpu", "name"}));
  add("cores", text_at(json, {"machine", "cpu", "cores_used"}));
  add("instruction sets", text_at(json, {"machine", "cpu", "instruction_sets"}));
  const Json flags = json.value("config", Json::object());
  for (const auto& [name, value] : flags.items()) {
    if (std::ranges::find(flags_of_no_step, name) == flags_of_no_step.end()) {
      run.identity.emplace("--" + name, text_of(value));
    }
  }
}

void add_surroundings(Run& run) {
  const Json& json = run.json;
  const auto add = [&run](std::string name, std::string text) {
    if (!text.empty()) {
      run.surroundings.emplace(std::move(name), std::move(text));
    }
  };
  add("commit", text_at(json, {"commit"}));
  add("host", text_at(json, {"machine", "host"}));
  add("memory bytes", text_at(json, {"machine", "memory_bytes"}));
  add("driver", text_at(json, {"machine", "gpu", "driver"}));
  add("layout", text_at(json, {"plan", "layout"}));
  const Json machine = json.value("machine", Json::object());
  if (machine.is_object() && machine.contains("libraries")) {
    for (const auto& [name, version] : machine.at("libraries").items()) {
      add(name, text_of(version));
    }
  }
}

}  // namespace

void add_facts(Run& run) {
  add_identity(run);
  add_surroundings(run);
}

std::string text_at(const Json& json, std::initializer_list<const char*> keys) {
  const Json* at = &json;
  for (const char* key : keys) {
    if (!at->is_object() || !at->contains(key)) {
      return {};
    }
    at = &at->at(key);
  }
  return at->is_null() ? std::string() : text_of(*at);
}

std::vector<std::string> unlike_flags(const Json& base, const Json& candidate) {
  std::vector<std::string> lines;
  for (const auto& [name, value] : base.items()) {
    const bool of_no_step =
        std::ranges::find(flags_of_no_step, name) != flags_of_no_step.end() || name == "hash_file";
    if (!of_no_step && candidate.contains(name) && candidate.at(name) != value) {
      lines.push_back(fmt::format("--{}: {} before, {} now", name, text_of(value),
                                  text_of(candidate.at(name))));
    }
  }
  return lines;
}

Run parse_run(const std::string& path, const std::string& text) {
  Run run{.path = path};
  try {
    run.json = data::parse_json<Json>(text);
  } catch (const data::JsonError& problem) {
    refuse_file(path, problem.cut_off() ? "cut off: the JSON ends too early; was the run killed?"
                                        : problem.what());
  }
  check_form(path, run.json);
  try {
    run.started = text_at(run.json, {"started"});
    run.turns = text_at(run.json, {"config", "take_turns"});
    add_steps(run);
    add_facts(run);
  } catch (const Json::exception& error) {
    refuse_file(path, fmt::format("a result with a damaged section ({})", error.what()));
  }
  return run;
}

std::string read_text(const std::string& path) {
  std::error_code problem;
  const std::filesystem::file_status status = std::filesystem::status(path, problem);
  if (!std::filesystem::exists(status)) {
    refuse_file(path, "no such file");
  }
  if (std::filesystem::is_directory(status)) {
    refuse_file(path, "a folder; name the files in it, as FOLDER/*.json");
  }
  errno = 0;
  std::ifstream file(path, std::ios::binary);
  if (!file) {
    refuse_file(path, std::strerror(errno));
  }
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

Run read_run(const std::string& path) { return parse_run(path, read_text(path)); }

RunSummary summarise(const std::vector<TimedStep>& steps) {
  check(!steps.empty(), "a run without steps has no summary");
  std::vector<double> counted;
  for (const TimedStep& step : steps) {
    if (!step.disturbed) {
      counted.push_back(step.seconds);
    }
  }
  RunSummary summary{.steps = steps.size(), .disturbed = steps.size() - counted.size()};
  if (summary.disturbed > 0 &&
      (counted.size() < min_undisturbed || 2 * counted.size() < steps.size())) {
    summary.disturbed_run = 2 * counted.size() < steps.size();
    counted.clear();
    for (const TimedStep& step : steps) {
      counted.push_back(step.seconds);
    }
  }
  summary.seconds = median(std::move(counted));
  return summary;
}

}  // namespace cnn::compare
