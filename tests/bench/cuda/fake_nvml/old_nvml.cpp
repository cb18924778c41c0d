// Fake versions of the functions that every NVML has, with NVML's names and numbers.

#include <string>

#include "tests/bench/cuda/fake_nvml/script.h"

namespace fake_nvml {
namespace {

constexpr int invalid_argument = 2;
constexpr int not_found = 6;

}  // namespace
}  // namespace fake_nvml

// NOLINTBEGIN(readability-identifier-naming): the names are NVML's.
extern "C" {

// Each loaded library has a script of its own.
fake_nvml::Script* script() {
  static fake_nvml::Script the_script;
  return &the_script;
}

int nvmlInit_v2() {
  ++script()->starts;
  return script()->init;
}

int nvmlShutdown() {
  ++script()->stops;
  return 0;
}

const char* nvmlErrorString(int status) {
  switch (status) {
    case fake_nvml::not_found:
      return "Not Found";
    case 9:
      return "Driver Not Loaded";
    default:
      return "Unknown Error";
  }
}

// A device handle is the address of the string that holds the device's name.
int nvmlDeviceGetHandleByPciBusId_v2(const char* bus_id, void** device) {
  if (script()->bus_id != bus_id) {
    return fake_nvml::not_found;
  }
  script()->found_by = bus_id;
  *device = &script()->bus_id;
  return 0;
}

int nvmlDeviceGetHandleByUUID(const char* uuid, void** device) {
  for (std::string* known : {&script()->uuid, &script()->instance_uuid}) {
    if (!known->empty() && *known == uuid) {
      script()->found_by = uuid;
      *device = known;
      return 0;
    }
  }
  return fake_nvml::not_found;
}

int nvmlDeviceGetClockInfo(void* device, int type, unsigned* mhz) {
  if (device == nullptr || (type != 1 && type != 2)) {
    return fake_nvml::invalid_argument;
  }
  *mhz = type == 1 ? script()->sm_mhz : script()->memory_mhz;
  return script()->clocks;
}

int nvmlDeviceGetMaxClockInfo(void* device, int type, unsigned* mhz) {
  if (device == nullptr || type != 1) {
    return fake_nvml::invalid_argument;
  }
  *mhz = script()->highest_sm_mhz;
  return script()->clocks;
}

int nvmlDeviceGetTemperature(void* device, int sensor, unsigned* celsius) {
  if (device == nullptr || sensor != 0) {
    return fake_nvml::invalid_argument;
  }
  *celsius = script()->celsius;
  return script()->temperature;
}

int nvmlDeviceGetPowerUsage(void* /*device*/, unsigned* milliwatts) {
  *milliwatts = script()->milliwatts;
  return script()->power;
}

int nvmlDeviceGetCurrentClocksThrottleReasons(void* /*device*/, unsigned long long* reasons) {
  *reasons = script()->reason_bits;
  return script()->reasons;
}

int nvmlDeviceGetMemoryInfo(void* /*device*/, unsigned long long* total_free_used) {
  total_free_used[0] = 100;
  total_free_used[1] = 100 - script()->used_bytes;
  total_free_used[2] = script()->used_bytes;
  return script()->memory;
}

}  // extern "C"
// NOLINTEND(readability-identifier-naming)
