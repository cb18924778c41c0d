// Fake versions of the functions that only recent versions of NVML have.

#include <cstdio>

#include "tests/bench/cuda/fake_nvml/script.h"

// NOLINTBEGIN(readability-identifier-naming): the names are NVML's.
extern "C" {

fake_nvml::Script* script();

int nvmlSystemGetDriverVersion(char* version, unsigned length) {
  std::snprintf(version, length, "580.65.06");
  return 0;
}

int nvmlDeviceGetMigMode(void* /*device*/, unsigned* now, unsigned* pending) {
  *now = *pending = script()->mig_mode;
  return script()->mig;
}

int nvmlDeviceGetEnforcedPowerLimit(void* /*device*/, unsigned* milliwatts) {
  *milliwatts = script()->limit_milliwatts;
  return script()->power;
}

int nvmlDeviceGetCurrentClocksEventReasons(void* /*device*/, unsigned long long* reasons) {
  *reasons = script()->reason_bits;
  return script()->reasons;
}

int nvmlDeviceGetTotalEnergyConsumption(void* /*device*/, unsigned long long* millijoules) {
  *millijoules = script()->millijoules;
  return script()->energy;
}

}  // extern "C"
// NOLINTEND(readability-identifier-naming)
