#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <exception>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unistd.h>
#include <vector>

#include "allreduce/world.h"
#include "bench/compare/history.h"
#include "bench/flags/config_json.h"
#include "bench/flags/flag_rules.h"
#include "bench/flags/flags.h"
#include "bench/flags/help.h"
#include "bench/machine/backend.h"
#include "bench/machine/cpu_backend.h"
#include "bench/machine/gpu_module.h"
#include "bench/machine/openmp_spin.h"
#include "bench/page/page.h"
#include "bench/ranks/exchange_flags.h"
#include "bench/ranks/failure.h"
#include "bench/ranks/interruption.h"
#include "bench/ranks/launcher.h"
#include "bench/report/append_line.h"
#include "bench/report/console.h"
#include "bench/report/exit_code.h"
#include "bench/report/listing.h"
#include "bench/report/output_file.h"
#include "bench/report/result_file.h"
#include "bench/report/result_json.h"
#include "bench/report/steps_csv.h"
#include "bench/run/runner.h"
#include "bench/version/build_info.h"
#include "runtime/error.h"
#include "runtime/resource_limits.h"

namespace {

using namespace cnn::bench;

RunIdentity identity_of(const CommandLine& line, const std::vector<std::string>& words) {
  RunIdentity identity{.version = std::string(build_version()),
                       .command = words,
                       .started = std::chrono::system_clock::now(),
                       .config = config_json(line.settings)};
  if (build_commit()) {
    identity.commit = std::string(*build_commit());
  }
  return identity;
}

// Returns the exit status, or an error status if a line of stdout was lost.
int status_of(Console& console, int status) {
  if (!console.lost()) {
    return status;
  }
  console.note(*console.lost());
  return 1;
}

// Holds the command line and the start of the process.
struct Start {
  CommandLine line;
  std::vector<BackendKind> backends;
  RunIdentity identity;
  std::chrono::steady_clock::time_point process_start;
};

// Removes files and turns from the flags of later ranks: only the first rank reads and writes these
// files and takes turns, and the others wait for it.
void write_no_files(Config& config) {
  for (std::optional<std::string>* const file :
       {&config.report.result_json, &config.report.log_dir, &config.report.html_report,
        &config.report.tfprof_file, &config.report.graph_file, &config.report.steps_csv,
        &config.report.hash_file, &config.report.history}) {
    file->reset();
  }
  for (std::optional<std::string>* const file :
       {&config.lms.plan_file, &config.lms.plan_out, &config.lms.trace}) {
    file->reset();
  }
  config.lms.stats = config.lms.stats_average = false;
  config.report.trace_file.clear();
  config.report.take_turns.reset();
  config.checkpoint.train_dir.reset();
}

// Connects to the other processes of the run; returns null if this is the only process.
std::unique_ptr<cnn::allreduce::World> join_world(Start& start, Console& console) {
  const std::optional<LauncherInfo> by = detect_launcher();
  if (!by) {
    return nullptr;
  }
  if (by->ranks.value_or(2) > 1) {
    console.become_rank(by->rank);
  }
  std::unique_ptr<cnn::allreduce::World> world =
      open_world(*by, world_options(start.line.config.comm), console);
  if (world->rank() > 0) {
    write_no_files(start.line.config);
  }
  return world;
}

// Returns the line that --history keeps of a result.
std::string history_line_of(const Json& result) {
  return cnn::compare::history_line(cnn::compare::parse_run("--history", result_text(result)));
}

// Writes one result in several formats: --result_json for programs, --html_report for people,
// --steps_csv for tables, and a line for --history.
class Reports {
 public:
  // Throws Error if a path cannot be written.
  explicit Reports(const ReportOptions& options) : file_(options.result_json) {
    if (options.html_report) {
      page_.emplace("--html_report", *options.html_report);
    }
    if (options.history) {
      make_folder_of(*options.history);
      append_to_file("--history", *options.history, "");  // fails early if not writable
      history_ = *options.history;
    }
    if (options.steps_csv) {
      make_folder_of(*options.steps_csv);
      steps_.emplace("--steps_csv", *options.steps_csv);
    }
  }
  ResultFile& file() { return file_; }

  // Writes all reports at the end of every run, whatever errors some of them meet. Throws Error
  // that says why the first of the failed reports cannot be written.
  void publish(const Json& result) {
    std::exception_ptr problem;
    const auto keep_problem = [&problem](const auto& write) {
      try {
        write();
      } catch (const std::exception&) {
        problem = problem ? problem : std::current_exception();
      }
    };
    keep_problem([&] { file_.publish(result); });
    if (page_) {
      keep_problem([&] { page_->write(cnn::page::run_page(result_text(result))); });
    }
    if (steps_) {
      keep_problem([&] { steps_->write(steps_csv(result)); });
    }
    if (history_ && !result.at("steps").empty() && !result.contains("error") &&
        !result.contains("interrupted_by")) {
      keep_problem([&] { append_line("--history", *history_, history_line_of(result)); });
    }
    if (problem) {
      std::rethrow_exception(problem);
    }
  }

 private:
  ResultFile file_;
  std::optional<OutputFile> page_, steps_;
  std::optional<std::string> history_;  // path
};

// Publishes the result after an error that the user has seen. A report that cannot be written may
// be that same error.
void publish_failure(Reports& reports, const Json& result, const std::string& told,
                     Console& console) {
  try {
    reports.publish(result);
  } catch (const std::exception& problem) {
    if (const std::string text = cnn::failure_text(problem); text != told) {
      console.note_own(text);
    }
  }
}

// Runs the benchmark and writes the result file, whatever happens. Returns the exit status of an
// error, else 0.
int run(const Start& start, cnn::allreduce::World* world, Interruption& interruption,
        Console& console) {
  Json result = new_result(start.identity);
  std::optional<Reports> reports;
  try {
    reports.emplace(start.line.config.report);
    run_benchmark({.config = start.line.config,
                   .backends = start.backends,
                   .identity = start.identity,
                   .process_start = start.process_start,
                   .interruption = interruption,
                   .world = world},
                  console, result, reports->file());
    if (console.lost()) {
      result["error"] = *console.lost();
    } else if (interruption.requested()) {
      result["interrupted_by"] = interruption.reason();
    }
    reports->publish(result);
  } catch (const std::exception& error) {
    report_failure(error, world, interruption, console);
    result["error"] = cnn::failure_text(error);
    if (reports) {
      publish_failure(*reports, result, cnn::failure_text(error), console);
    }
    return exit_code_of(error);
  }
  return 0;
}

// Runs the job, alone or with other processes. Returns the exit status; ends by the signal that
// interrupted the run.
int run(Start start, Console& console) {
  const std::unique_ptr<cnn::allreduce::World> world = join_world(start, console);
  for (const std::string& notice : start.line.notices) {
    console.note(notice);
  }
  drop_files_of_steps(start.line.config);
  Interruption interruption(console);
  if (const std::optional<int> announcer = announcing_process(); announcer && world) {
    interruption.heed_announcement(*announcer);
  }
  if (const int failed = run(start, world.get(), interruption, console); failed != 0) {
    return failed;
  }
  if (world) {
    world->finish();
  }
  if (const std::optional<int> signal = interruption.signal()) {
    end_by_signal(*signal);
  }
  return status_of(console, 0);
}

EnvironmentVariables horovod_variables() {
  EnvironmentVariables found;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string_view text = *entry;
    if (const auto equals = text.find('='); text.starts_with("HOROVOD_") && equals < text.size()) {
      found.emplace_back(text.substr(0, equals), text.substr(equals + 1));
    }
  }
  std::ranges::sort(found);
  return found;
}

RunEnvironment environment_of(std::span<const BackendKind> backends) {
  RunEnvironment environment{.bf16 = cpu_computes_bf16(),
                             .launched = detect_launcher().has_value(),
                             .program = program_path()};
  if (const char* options = std::getenv("DDL_OPTIONS")) {
    environment.ddl_options = options;
  }
  environment.horovod = horovod_variables();
  if (const BackendKind* gpu = find_backend(backends, "gpu")) {
    environment.gpu_backend = true;
    environment.missing_gpu = gpu->missing;
  }
  return environment;
}

// Parses the flags; returns nothing and prints the error if they are wrong.
std::optional<CommandLine> read_flags(std::span<const std::string> words,
                                      std::span<const BackendKind> backends, Console& console) {
  try {
    return parse_flags(words.subspan(words.empty() ? 0 : 1), environment_of(backends));
  } catch (const std::exception& error) {
    report_wrong_flags(error, console);
    return std::nullopt;
  }
}

}  // namespace

int main(int argc, char** argv) {
  limit_openmp_spinning(program_path(), argv);
  const auto process_start = std::chrono::steady_clock::now();
  guard_standard_streams();
  Console console;
  const std::vector<std::string> words(argv, argv + argc);
  try {
    std::vector<BackendKind> backends = gpu_backends();
    backends.push_back(cpu_backend());
    const std::optional<CommandLine> line = read_flags(words, backends, console);
    if (!line) {
      return 1;
    }
    if (wants_help(line->config)) {
      std::string help = help_text(line->config.help);
      help.pop_back();  // print adds the last line break
      console.print(help);
      return status_of(console, 1);  // same status as absl's flags
    }
    if (wants_listing(line->config)) {
      console.print(listing("cnn_benchmarks", line->config, backends));
      return status_of(console, 0);
    }
    if (refuse_unconnected_tasks(console)) {
      return 1;
    }
    const RunIdentity identity = identity_of(*line, words);
    return run({*line, backends, identity, process_start}, console);
  } catch (const std::exception& error) {
    console.note_own(cnn::failure_text(error));
    return exit_code_of(error);
  }
}
