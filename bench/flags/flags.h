#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "bench/flags/config.h"
#include "bench/flags/settings.h"

namespace cnn::bench {

// Describes what this build can do on this machine and how it was started; main fills it.
struct RunEnvironment {
  bool bf16 = false;  // bf16 products on the CPU
  // DDL_OPTIONS of the environment: stands for --ddl_options where that is not set.
  std::optional<std::string> ddl_options = std::nullopt;
  EnvironmentVariables horovod = {};  // those that it names HOROVOD_...
  bool launched = false;  // the process is one of several that mpirun or its like has started
  // Path of the program, for lines that tell how to start it. Nothing: they give its name.
  std::optional<std::string> program = std::nullopt;
  bool gpu_backend = false;  // computes on GPUs and plans for one that is not there
  // Why there is no GPU here; empty if there is one. Asked only where one could be used, as it may
  // load libraries. Null: there is one.
  std::string (*missing_gpu)() = nullptr;
};

struct CommandLine {
  Config config;
  std::vector<Setting> settings;     // every flag, also those that do not act
  std::vector<std::string> notices;  // one line each, for stderr
};

// Command line (without the program's name) to a checked configuration. If a help flag is set,
// nothing else is checked. Throws Error: bad syntax, bad value, a flag this version rejects, or
// flags that contradict each other; what() is the line for stderr, the exit status is then 1.
CommandLine parse_flags(std::span<const std::string> words, const RunEnvironment& environment);

bool wants_help(const Config& config);
// --version or --list_models: like help, they answer and end the program.
bool wants_listing(const Config& config);

}  // namespace cnn::bench
