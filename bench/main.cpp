#include <chrono>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "bench/flags/config_json.h"
#include "bench/flags/flags.h"
#include "bench/machine/backend.h"
#include "bench/machine/cpu_backend.h"
#include "bench/machine/gpu_module.h"
#include "bench/report/build_info.h"
#include "bench/report/console.h"
#include "bench/report/result_file.h"
#include "bench/report/result_json.h"
#include "bench/run/interruption.h"
#include "bench/run/runner.h"
#include "runtime/error.h"

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

// The exit status, or that of an error if a line of stdout was lost.
int status_of(Console& console, int status) {
  if (!console.lost()) {
    return status;
  }
  console.note(*console.lost());
  return 1;
}

int exit_code_of(const std::exception& error) {
  const auto* own = dynamic_cast<const cnn::Error*>(&error);
  return own == nullptr ? 1 : own->exit_code();
}

// Runs what the flags say. Whatever happens, the result file tells what is known. Returns the exit
// status; ends by the signal that interrupted the run.
int run(const CommandLine& line, std::span<const BackendKind> backends, const RunIdentity& identity,
        Console& console, std::chrono::steady_clock::time_point process_start) {
  for (const std::string& notice : line.notices) {
    console.note(notice);
  }
  Json result = new_result(identity);
  ResultFile file(line.config.report.result_json);
  const Interruption interruption(console);
  try {
    run_benchmark({.config = line.config,
                   .backends = backends,
                   .identity = identity,
                   .process_start = process_start,
                   .interruption = interruption},
                  console, result, file);
  } catch (const std::exception& error) {
    console.note(error.what());
    result["error"] = error.what();
    file.publish(result);
    return exit_code_of(error);
  }
  if (console.lost()) {
    result["error"] = *console.lost();
  } else if (interruption.requested()) {
    result["interrupted_by"] = interruption.reason();
  }
  file.publish(result);
  if (const std::optional<int> signal = interruption.signal()) {
    end_by_signal(*signal);
  }
  return status_of(console, 0);
}

Abilities abilities_of(std::span<const BackendKind> backends) {
  Abilities abilities{.bf16 = cpu_computes_bf16()};
  if (const BackendKind* gpu = find_backend(backends, "gpu")) {
    abilities.gpu_backend = true;
    abilities.missing_gpu = gpu->missing;
  }
  return abilities;
}

}  // namespace

int main(int argc, char** argv) {
  const auto process_start = std::chrono::steady_clock::now();
  guard_standard_streams();
  Console console;
  const std::vector<std::string> words(argv, argv + argc);
  try {
    std::vector<BackendKind> backends = gpu_backends();
    backends.push_back(cpu_backend());
    const CommandLine line = parse_flags(
        std::span<const std::string>(words).subspan(words.empty() ? 0 : 1), abilities_of(backends));
    if (wants_help(line.config)) {
      std::string help = help_text(line.config);
      help.pop_back();  // the last line break, which print adds
      console.print(help);
      return status_of(console, 1);  // as absl's flags do
    }
    return run(line, backends, identity_of(line, words), console, process_start);
  } catch (const std::exception& error) {
    console.note(error.what());
    return exit_code_of(error);
  }
}
