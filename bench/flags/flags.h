#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "bench/flags/config.h"
#include "bench/flags/settings.h"

namespace cnn::bench {

// The capabilities of this build and machine, and how the process was started; main fills it.
struct RunEnvironment {
  bool bf16 = false;  // bf16 products on the CPU
  // The environment variable DDL_OPTIONS: the default of --ddl_options.
  std::optional<std::string> ddl_options = std::nullopt;
  EnvironmentVariables horovod = {};  // variables named HOROVOD_...
  bool launched = false;  // a launcher such as mpirun started the process as one of several
  // Path of the program, for messages about how to start it. Nothing: messages use its name.
  std::optional<std::string> program = std::nullopt;
  bool gpu_backend = false;  // the build computes on GPUs and plans for absent ones
  // Returns why there is no GPU here; empty if there is one. Called only if a GPU could be used,
  // since it may load libraries. Null: there is one.
  std::string (*missing_gpu)() = nullptr;
};

struct CommandLine {
  Config config;
  std::vector<Setting> settings;     // every flag, including those without effect
  std::vector<std::string> notices;  // one line each, for stderr
};

// Parses and checks a command line (without the program's name). If a help flag is set, checks
// nothing else. Throws Error: bad syntax, bad value, a rejected flag, or contradictory flags;
// what() is the line for stderr, and the exit status is 1.
CommandLine parse_flags(std::span<const std::string> words, const RunEnvironment& environment);

bool wants_help(const Config& config);
// Returns whether --version or --list_models is set: the program prints a list and ends.
bool wants_listing(const Config& config);

}  // namespace cnn::bench
