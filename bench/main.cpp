#include <chrono>
#include <fmt/format.h>
#include <span>
#include <string>
#include <vector>

#include "bench/flags/flags.h"
#include "bench/machine/add_backend.h"
#include "bench/machine/backend.h"
#include "bench/machine/cpu_backend.h"
#include "bench/report/build_info.h"
#include "bench/report/console.h"
#include "bench/report/result_json.h"
#include "bench/run/runner.h"

namespace {

using namespace cnn::bench;

// Runs what the flags say. Whatever happens, the result file tells what is known.
void run(const CommandLine& line, std::span<const BackendKind> backends,
         const std::vector<std::string>& words,
         std::chrono::steady_clock::time_point process_start) {
  Console console;
  for (const std::string& notice : line.notices) {
    console.note(notice);
  }
  ResultRecord record{.version = std::string(build_version())};
  if (build_commit()) {
    record.commit = std::string(*build_commit());
  }
  record.command = words;
  record.started = std::chrono::system_clock::now();
  record.config = line.config;
  const auto write = [&] {
    if (line.config.result_json) {
      write_result(*line.config.result_json, record);
    }
  };
  try {
    run_benchmark(line.config, backends, console, record, process_start);
  } catch (const std::exception& error) {
    record.error = error.what();
    write();
    throw;
  }
  write();
}

Abilities abilities_of(std::span<const BackendKind> backends) {
  Abilities abilities{.bf16 = cpu_computes_bf16()};
  if (const BackendKind* gpu = find_backend(backends, "gpu")) {
    abilities.cuda = gpu->missing.empty();
    abilities.simulates = gpu->describe != nullptr;
    abilities.gpu_missing = gpu->missing;
  }
  return abilities;
}

}  // namespace

int main(int argc, char** argv) {
  const auto process_start = std::chrono::steady_clock::now();
  const std::vector<std::string> words(argv, argv + argc);
  try {
    std::vector<BackendKind> backends{cpu_backend()};
    add_backend(backends);
    const CommandLine line = parse_flags(
        std::span<const std::string>(words).subspan(words.empty() ? 0 : 1), abilities_of(backends));
    if (wants_help(line.config)) {
      fmt::print("{}", help_text(line.config));
      return 1;  // as absl's flags do
    }
    run(line, backends, words, process_start);
    return 0;
  } catch (const std::exception& error) {
    fmt::print(stderr, "{}\n", error.what());
    return 1;
  }
}
