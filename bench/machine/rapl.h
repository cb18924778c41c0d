#pragma once

#include <filesystem>
#include <memory>

#include "bench/machine/telemetry.h"

namespace cnn::bench {

// Opens the processors' energy counters (RAPL), if the kernel lets this user read them: they count
// all packages, all processes, and exclude memory. Otherwise nullptr.
std::unique_ptr<TelemetrySource> open_rapl(
    const std::filesystem::path& powercap = "/sys/class/powercap");

}  // namespace cnn::bench
