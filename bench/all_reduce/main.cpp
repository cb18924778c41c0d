#include <exception>
#include <fmt/format.h>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "bench/all_reduce/benchmark.h"
#include "bench/all_reduce/options.h"
#include "bench/flags/config_json.h"
#include "bench/flags/fault_spec.h"
#include "bench/flags/flags.h"
#include "bench/flags/help.h"
#include "bench/machine/backend.h"
#include "bench/machine/cpu_backend.h"
#include "bench/machine/gpu_module.h"
#include "bench/ranks/exchange_flags.h"
#include "bench/ranks/failure.h"
#include "bench/ranks/interruption.h"
#include "bench/ranks/launcher.h"
#include "bench/ranks/rank_consistency.h"
#include "bench/report/console.h"
#include "bench/report/exit_code.h"
#include "bench/report/listing.h"
#include "bench/report/result_json.h"
#include "bench/version/build_info.h"
#include "runtime/error.h"
#include "runtime/resource_limits.h"

namespace {

using namespace cnn::bench;

// Puts the program's defaults first, because later flags win.
std::vector<std::string> with_defaults(const std::vector<std::string>& words, bool launched) {
  std::vector<std::string> all{"--variable_update=replicated", "--device=cpu",
                               launched ? "--num_gpus=1" : "--num_gpus=2"};
  all.insert(all.end(), words.begin(), words.end());
  return all;
}

void check_config(const Config& config) {
  cnn::check(
      !config.comm.launched || config.num_gpus == 1,
      "all_reduce_benchmark: a process that mpirun starts is one rank; leave out --num_gpus");
  cnn::check(config.variable_update == VariableUpdate::replicated,
             "all_reduce_benchmark reduces as --variable_update=replicated does; leave it out");
  cnn::check(!config.gpu.simulate,
             "--simulate: all_reduce_benchmark times real reductions; leave it out, or use "
             "cnn_benchmarks --simulate_ranks");
  cnn::check(!flips_a_bit(config.comm.fault) && !config.report.hash_file,
             "all_reduce_benchmark trains no network, whose tensors --hash_file and what=flip of "
             "--comm_fault are about: use cnn_benchmarks");
}

// Returns the flags in which ranks must not differ, or they would make different reductions and
// wait for one another.
std::string flags_text(const CommandLine& line, const ReduceOptions& options) {
  RunIdentity identity{.version = std::string(build_version()),
                       .config = config_json(line.settings)};
  if (build_commit()) {
    identity.commit = std::string(*build_commit());
  }
  return description(identity, "all_reduce_benchmark") + compared_text(options);
}

// Runs the reduction and returns the exit status, also after an error. flags: see flags_text().
int reduce(const ReduceRun& run, const std::string& flags, cnn::allreduce::World* world,
           const std::vector<BackendKind>& backends) {
  const auto make = [&](const Config& config) { return make_backend(config, backends); };
  try {
    if (world != nullptr) {
      check_equal_on_all_ranks(*world, flags);
      const int status = run_reductions(run, make, *world);
      world->finish();
      return status;
    }
    const Backend backend = make(run.config);
    run.console.note("device: " + backend.description);
    return run_reductions(run, backend);
  } catch (const std::exception& error) {
    report_failure(error, world, run.interruption, run.console);
    return exit_code_of(error);
  }
}

// Holds the parsed command line of the user.
struct Request {
  ReduceOptions options;
  CommandLine line;
};

Request read_request(const std::vector<std::string>& words, bool launched,
                     std::span<const BackendKind> backends) {
  Request request{.options = parse_reduce_options(std::span(words).subspan(words.empty() ? 0 : 1)),
                  .line = {}};
  RunEnvironment environment{
      .bf16 = cpu_computes_bf16(), .launched = launched, .program = program_path()};
  if (const BackendKind* const gpu = find_backend(backends, "gpu")) {
    environment.gpu_backend = true;
    environment.missing_gpu = gpu->missing;
  }
  request.line = parse_flags(with_defaults(request.options.suite, launched), environment);
  if (!wants_help(request.line.config) && !wants_listing(request.line.config)) {
    check_config(request.line.config);
  }
  return request;
}

// Parses the command line; returns nothing and prints the error if the flags are wrong.
std::optional<Request> try_to_read(const std::vector<std::string>& words, bool launched,
                                   std::span<const BackendKind> backends, Console& console) {
  try {
    return read_request(words, launched, backends);
  } catch (const std::exception& error) {
    report_wrong_flags(error, console);
    return std::nullopt;
  }
}

int run(const std::vector<std::string>& words, Console& console) {
  const std::optional<LauncherInfo> by = detect_launcher();
  std::vector<BackendKind> backends = gpu_backends();
  backends.push_back(cpu_backend());
  const std::optional<Request> request = try_to_read(words, by.has_value(), backends, console);
  if (!request) {
    return 1;
  }
  if (by && by->ranks.value_or(2) > 1) {
    console.become_rank(by->rank);
  }
  const CommandLine& line = request->line;
  if (wants_help(line.config)) {
    if (line.config.help.format == HelpFormat::text) {
      console.print(reduce_help());
    }
    console.print(help_text(line.config.help));
    return 1;  // same status as absl's flags
  }
  if (wants_listing(line.config)) {
    console.print(listing("all_reduce_benchmark", line.config, backends));
    return 0;
  }
  if (refuse_unconnected_tasks(console)) {
    return 1;
  }
  for (const std::string& notice : line.notices) {
    console.note(notice);
  }
  const std::string_view full = build_version();
  const std::string title =
      fmt::format("Program:     all_reduce_benchmark {}", full.substr(0, full.rfind('.')));
  const auto world = by ? open_world(*by, world_options(line.config.comm), console) : nullptr;
  if (world == nullptr || world->rank() == 0) {
    console.print(title);
  }
  Interruption interruption(console);
  const int status = reduce({line.config, request->options, console, interruption},
                            flags_text(line, request->options), world.get(), backends);
  if (const std::optional<int> signal = interruption.signal(); signal && status == 0) {
    end_by_signal(*signal);
  }
  return status;
}

}  // namespace

int main(int argc, char** argv) {
  guard_standard_streams();
  Console console;
  try {
    const int status = run({argv, argv + argc}, console);
    if (console.lost()) {
      console.note(*console.lost());
      return 1;
    }
    return status;
  } catch (const std::exception& error) {
    console.note_own(cnn::failure_text(error));
    return exit_code_of(error);
  }
}
