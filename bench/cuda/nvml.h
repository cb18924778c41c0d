#pragma once

#include <memory>
#include <string>

#include "bench/machine/telemetry.h"

namespace cnn::bench {

// How CUDA calls a device. NVML numbers devices in its own way, and knows no CUDA_VISIBLE_DEVICES.
struct GpuAddress {
  std::string pci_bus_id;  // "0000:1b:00.0"
  std::string uuid;        // "8b5e06c6-...", without the GPU- or MIG- before it
};

// Reads from the driver's management library what it tells of a device. It is loaded here, so that
// neither the build nor a machine without it needs it. An instance (MIG) is told only its own,
// which excludes power. Throws Error that says what is missing.
std::unique_ptr<TelemetrySource> open_nvml(const GpuAddress& device,
                                           const std::string& library = "libnvidia-ml.so.1");

// Returns the release of the driver, "580.65.06"; empty where no NVML tells it.
std::string driver_release(const std::string& library = "libnvidia-ml.so.1");

}  // namespace cnn::bench
