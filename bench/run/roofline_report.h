#pragma once

#include <optional>

#include "bench/flags/json.h"
#include "bench/machine/backend.h"
#include "bench/plan/job.h"
#include "bench/report/console.h"
#include "runtime/program.h"

namespace cnn::bench {

// Measures the device's ceilings and compares the timed steps of `plan` with them: a line on stderr
// and percent_of_roofline of the result's summary. If the measurement fails, prints why and changes
// nothing else. Returns the measured ceilings.
std::optional<Ceilings> add_roofline(const Job& job, const Backend& backend, const StepPlan& plan,
                                     Console& console, Json& result);

}  // namespace cnn::bench
