#pragma once

#include <chrono>
#include <span>

#include "allreduce/world.h"
#include "bench/flags/config.h"
#include "bench/flags/json.h"
#include "bench/machine/backend.h"
#include "bench/ranks/interruption.h"
#include "bench/report/console.h"
#include "bench/report/result_file.h"
#include "bench/report/result_json.h"

namespace cnn::bench {

struct RunRequest {
  const Config& config;
  std::span<const BackendKind> backends;
  const RunIdentity& identity;
  std::chrono::steady_clock::time_point process_start;  // when main began
  Interruption& interruption;
  allreduce::World* world = nullptr;  // of several processes; null: there is one
};

// The whole run that a checked configuration asks for: header, warm-up, timed steps, evaluations,
// totals; or as much of it as was done when it was interrupted. Fills the result as it goes, so
// that after an error it tells what is known, and publishes it before anything that could still go
// wrong is tried. Throws Error.
void run_benchmark(const RunRequest& request, Console& console, Json& result, ResultFile& file);

}  // namespace cnn::bench
