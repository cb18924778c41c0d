#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <vector>

#include "bench/flags/json.h"

namespace cnn::bench {

// The result file of --result_json: what the run was and every number it made, as one object of
// sections. Each section is the word of its owner; times in seconds, sizes in bytes.

struct RunIdentity {
  std::string version;
  std::optional<std::string> commit{};
  std::vector<std::string> command{};  // argv
  std::chrono::system_clock::time_point started{};
  Json config{};
};

// A run of which nothing is known yet: all sections in their order, null or empty. Owners assign
// theirs: result["model"] = ...; those that not every run has ("telemetry", "simulation", "error",
// ...) come behind.
Json new_result(const RunIdentity& run);

// The whole file. Text from outside (paths, host names) need not be UTF-8: what is not is replaced.
std::string result_text(const Json& result);

// UTC with microseconds: 2026-01-31T12:00:00.000000Z.
std::string utc_text(std::chrono::system_clock::time_point when);

}  // namespace cnn::bench
