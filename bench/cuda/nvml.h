#pragma once

#include <memory>
#include <string>

#include "bench/machine/telemetry.h"

namespace cnn::bench {

// CUDA's identifiers of a device, by which NVML finds it. NVML numbers devices differently and
// ignores CUDA_VISIBLE_DEVICES.
struct GpuAddress {
  std::string pci_bus_id;  // "0000:1b:00.0"
  std::string uuid;        // "8b5e06c6-...", without the GPU- or MIG- before it
};

// Returns telemetry of a device from NVML, the driver's management library. The library is loaded
// at run time, so that neither the build nor a machine without GPUs requires it. A MIG instance
// reports only its own values, which exclude power. Throws Error with the missing library or
// function.
std::unique_ptr<TelemetrySource> open_nvml(const GpuAddress& device,
                                           const std::string& library = "libnvidia-ml.so.1");

// Returns the release of the driver, such as "580.65.06"; empty without NVML.
std::string driver_release(const std::string& library = "libnvidia-ml.so.1");

}  // namespace cnn::bench
