#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace cnn::bench {

// The machine's description in result files. Unknown numbers are 0.
struct MachineInfo {
  std::string host{};
  std::string cpu_name;               // "unknown" if /proc/cpuinfo lacks it
  std::int64_t processors = 0;        // logical processors of the machine
  double mhz = 0;                     // of the first processor, at the time of reading
  std::int64_t memory_total = 0;      // bytes
  std::int64_t memory_available = 0;  // bytes
};

// A GPU's description in result files. Unknown numbers are 0.
struct GpuInfo {
  std::string name;                // "NVIDIA H200"
  std::string driver;              // "13.0": the highest CUDA version that the driver supports
  std::string compute_capability;  // "9.0"
  std::int64_t multiprocessors = 0;
  std::int64_t memory_bytes = 0;
  double clock_mhz = 0, memory_clock_mhz = 0;  // highest
  std::string pci_bus_id;                      // "0000:1b:00.0"
};

// Parses the texts of /proc/cpuinfo and /proc/meminfo.
MachineInfo parse_machine_info(std::string_view cpuinfo, std::string_view meminfo);

// Reads the description of this machine; unreadable values stay unknown.
MachineInfo read_machine_info();

// Returns the peak resident memory of this process in bytes; nothing if the system does not tell.
std::optional<std::int64_t> process_peak_bytes();

}  // namespace cnn::bench
