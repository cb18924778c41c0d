#pragma once

#include <string>

// The answers of a fake NVML. A test finds the script in the loaded library by the symbol "script"
// and sets it.
namespace fake_nvml {

struct Script {
  // Statuses have NVML's numbers: 0 is success, 3 not supported, 6 not found.
  int init = 0, clocks = 0, temperature = 0, power = 0, energy = 0, memory = 0, reasons = 0,
      mig = 0;

  unsigned sm_mhz = 0, memory_mhz = 0, highest_sm_mhz = 0;
  unsigned celsius = 0, milliwatts = 0, limit_milliwatts = 0;
  unsigned long long millijoules = 0, used_bytes = 0, reason_bits = 0;
  unsigned mig_mode = 0;

  // The names of the known devices, and the name by which the last device was found.
  std::string bus_id{}, uuid{}, instance_uuid{};
  std::string found_by{};
  int starts = 0, stops = 0;
};

using FindScript = Script*();

}  // namespace fake_nvml
