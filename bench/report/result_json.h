#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <vector>

#include "bench/flags/json.h"

namespace cnn::bench {

// Writes the result file of --result_json: one object of sections that describes the run and all
// its measurements. Each section belongs to one owner; times in seconds, sizes in bytes.

struct RunIdentity {
  std::string version;
  std::optional<std::string> commit{};
  std::vector<std::string> command{};  // argv
  std::chrono::system_clock::time_point started{};
  Json config{};
};

// Returns the result of a new run: all sections in order, null or empty. Owners assign their
// sections: result["model"] = ...; optional sections ("telemetry", "simulation", "error", ...)
// follow.
Json new_result(const RunIdentity& run);

// Returns the whole file. Invalid UTF-8 in external text (paths, host names) is replaced.
std::string result_text(const Json& result);

// Returns UTC with microseconds: 2026-01-31T12:00:00.000000Z.
std::string utc_text(std::chrono::system_clock::time_point when);

}  // namespace cnn::bench
