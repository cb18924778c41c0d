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
  std::chrono::steady_clock::time_point process_start;  // the start of main
  Interruption& interruption;
  allreduce::World* world = nullptr;  // of several processes; null: a single process
};

// Executes the run of a checked configuration: header, warm-up, timed steps, evaluations, totals;
// or the part before an interruption. Fills the result as it goes, so that it is useful after an
// error, and publishes it before any step that could still fail. Throws Error.
void run_benchmark(const RunRequest& request, Console& console, Json& result, ResultFile& file);

}  // namespace cnn::bench
