#pragma once

#include <filesystem>
#include <memory>

#include "bench/machine/telemetry.h"

namespace cnn::bench {

// The energy that the processors count (RAPL), where the kernel lets this user read it: of all
// packages, whoever else computes on them, without memory. nullptr if it does not.
std::unique_ptr<TelemetrySource> open_rapl(
    const std::filesystem::path& powercap = "/sys/class/powercap");

}  // namespace cnn::bench
