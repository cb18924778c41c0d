#pragma once

#include <chrono>
#include <span>

#include "bench/flags/config.h"
#include "bench/machine/backend.h"
#include "bench/report/console.h"
#include "bench/report/result_json.h"

namespace cnn::bench {

// The whole run that a checked configuration asks for: header, warm-up, timed steps, evaluations,
// totals. Fills the record as it goes, so that after an error it tells what is known.
// process_start: when main began, for the time to the first step. Throws Error.
void run_benchmark(const Config& config, std::span<const BackendKind> backends, Console& console,
                   ResultRecord& record, std::chrono::steady_clock::time_point process_start);

}  // namespace cnn::bench
