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

// How a processor spent its time since the machine started, in ticks.
struct CoreTimes {
  std::int64_t idle = 0;   // waiting for disks included
  std::int64_t steal = 0;  // given to other guests of the host
  std::int64_t all = 0;
};
inline constexpr double ticks_per_second = 100;  // of all that /proc shows

// From the text of /proc/stat, for each of `cpus`. False if one of them is missing there.
bool parse_core_times(std::string_view stat, std::span<const int> cpus, std::span<CoreTimes> times);

// How often a group of processes had to wait as its quota of processor time was used up, from the
// text of a cpu.stat.
std::optional<std::uint64_t> parse_throttled_periods(std::string_view cpu_stat);

// The folders below /sys/fs/cgroup that may limit the processor time of a process, from the text of
// its /proc/self/cgroup: its group and all above it.
std::vector<std::filesystem::path> groups_with_quota(std::string_view cgroup);

// The use of all threads of this process so far, those that have ended included.
struct ProcessUse {
  std::int64_t involuntary_switches = 0;
  double cpu_seconds = 0;
};
ProcessUse process_use();

// The system's counters for some processors, kept open. Reading allocates nothing.
class SystemCounters {
 public:
  // root: that of the system's files.
  explicit SystemCounters(std::vector<int> cpus, const std::filesystem::path& root = "/");

  std::span<const int> cpus() const { return cpus_; }
  // In the order of cpus(). False if the system does not tell, or there are none.
  bool read(std::span<CoreTimes> times);
  // Times at which heat or a quota held processors back. Empty if nothing counts them.
  std::optional<std::uint64_t> throttled();

 private:
  std::vector<int> cpus_;
  OpenFile stat_;
  std::vector<OpenFile> heat_, quotas_;
  std::vector<char> text_;
};

}  // namespace cnn::bench
