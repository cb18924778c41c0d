#pragma once

#include "bench/flags/json.h"
#include "bench/machine/backend.h"
#include "bench/machine/machine_info.h"
#include "bench/machine/telemetry.h"

namespace cnn::bench {

// Returns section "machine" of the result file; its "gpu" is null if a CPU computes.
Json machine_json(const MachineInfo& info, const Backend& backend);

// Returns section "telemetry" without values that the device does not report.
Json telemetry_json(const Telemetry& telemetry);

}  // namespace cnn::bench
