#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "bench/machine/open_file.h"

namespace cnn::bench {

// The times of a processor since the machine started, in ticks.
struct CoreTimes {
  std::int64_t idle = 0;   // includes waits for disks
  std::int64_t steal = 0;  // used by other guests of the host
  std::int64_t all = 0;
};
inline constexpr double ticks_per_second = 100;  // of all counters in /proc

// Parses /proc/stat for each of `cpus`. Returns false if one of them is missing.
bool parse_core_times(std::string_view stat, std::span<const int> cpus, std::span<CoreTimes> times);

// Parses a cpu.stat: returns how often a cgroup was throttled because its CPU quota was used up.
std::optional<std::uint64_t> parse_throttled_periods(std::string_view cpu_stat);

// Parses /proc/self/cgroup: returns the folders below /sys/fs/cgroup that may limit the process's
// CPU time, its cgroup and all parents.
std::vector<std::filesystem::path> groups_with_quota(std::string_view cgroup);

// The resource use of all threads of this process so far, including ended threads.
struct ProcessUse {
  std::int64_t involuntary_switches = 0;
  double cpu_seconds = 0;
};
ProcessUse process_use();

// The system's counters for some processors, with open files. Reading allocates nothing.
class SystemCounters {
 public:
  // root: of the system's files.
  explicit SystemCounters(std::vector<int> cpus, const std::filesystem::path& root = "/");

  std::span<const int> cpus() const { return cpus_; }
  // Reads the times in the order of cpus(). Returns false if the system does not tell, or cpus() is
  // empty.
  bool read(std::span<CoreTimes> times);
  // Returns how often heat or a quota throttled processors. Empty if no counter exists.
  std::optional<std::uint64_t> throttled();

 private:
  std::vector<int> cpus_;
  OpenFile stat_;
  std::vector<OpenFile> heat_, quotas_;
  std::vector<char> text_;
};

}  // namespace cnn::bench
