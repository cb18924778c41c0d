#pragma once

#include <optional>

#include "bench/flags/json.h"
#include "bench/machine/backend.h"
#include "bench/plan/job.h"
#include "bench/report/console.h"
#include "runtime/program.h"

namespace cnn::bench {

// Measures what the device allows and says how near the timed steps of `plan` came to it: a line on
// stderr and percent_of_roofline of the result's summary. If it cannot be measured, a line says
// why; nothing else is lost. Returns what was measured.
std::optional<Ceilings> add_roofline(const Job& job, const Backend& backend, const StepPlan& plan,
                                     Console& console, Json& result);

}  // namespace cnn::bench
