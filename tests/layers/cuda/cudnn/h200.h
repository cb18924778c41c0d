#pragma once

#include <string>

#include "layers/cuda/cudnn/machine.h"

namespace cnn::tests {

// Returns the description of an H200, so that tests can plan for a device without having one.
inline layers::cuda::Machine h200() {
  layers::cuda::Machine machine{.name = "H200",
                                .device_json = R"({
    "cudaDeviceId": 0, "deviceVer": 900, "driverVer": 13000, "deviceName": "NVIDIA H200",
    "multiProcessorCount": 132, "totalGlobalMem": 150754820096, "l2CacheSize": 62914560,
    "smClockRateKHz": 1980000, "memClockRateKHz": 3201000, "warpSize": 32, "regsPerBlock": 65536,
    "maxGridSize": [2147483647, 65535, 65535], "maxBlockSize": [1024, 1024, 64],
    "maxSharedMemoryPerBlock": 49152, "maxSharedMemoryPerBlockOptin": 232448,
    "reservedSharedMemoryPerBlock": 1024, "maxRegistersPerSM": 65536, "maxCtasPerSM": 32,
    "maxThreadsPerBlock": 1024, "maxThreadsPerSM": 2048, "pciDeviceId": 0, "isTccDriver": 0,
    "supportCoopLaunch": 1})",
                                .capability = 90,
                                .multiprocessors = 132,
                                .memory_bytes = 150754820096};
  return machine;
}

}  // namespace cnn::tests
