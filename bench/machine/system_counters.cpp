#include "bench/machine/system_counters.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <string>
#include <sys/resource.h>
#include <unistd.h>
#include <utility>

namespace cnn::bench {
namespace {

using std::filesystem::path;

// Removes and returns the first line of a text.
std::string_view take_line(std::string_view& text) {
  const std::size_t end = text.find('\n');
  const std::string_view line = text.substr(0, end);
  text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
  return line;
}

// Removes and returns a number and the blanks before it; nothing if there is none.
std::optional<std::int64_t> take_number(std::string_view& text) {
  text.remove_prefix(std::min(text.find_first_not_of(' '), text.size()));
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc()) {
    return std::nullopt;
  }
  text.remove_prefix(static_cast<std::size_t>(end - text.data()));
  return value;
}

// Columns: user nice system idle iowait irq softirq steal; later columns are included in these.
std::optional<CoreTimes> take_times(std::string_view line) {
  constexpr std::size_t idle = 3, waiting = 4, steal = 7;
  std::array<std::int64_t, 8> ticks{};
  CoreTimes times;
  for (std::int64_t& each : ticks) {
    const std::optional<std::int64_t> number = take_number(line);
    if (!number) {
      return std::nullopt;
    }
    each = *number;
    times.all += each;
  }
  times.idle = ticks[idle] + ticks[waiting];
  times.steal = ticks[steal];
  return times;
}

double seconds(const timeval& time) {
  return static_cast<double>(time.tv_sec) + 1e-6 * static_cast<double>(time.tv_usec);
}

void add_if_there(std::vector<OpenFile>& files, const path& file) {
  OpenFile opened(file);
  if (opened.is_open()) {
    files.push_back(std::move(opened));
  }
}

}  // namespace

bool parse_core_times(std::string_view stat, std::span<const int> cpus,
                      std::span<CoreTimes> times) {
  std::size_t found = 0;
  while (stat.starts_with("cpu")) {  // these lines come first
    std::string_view line = take_line(stat).substr(3);
    const std::optional<std::int64_t> cpu =
        line.starts_with(' ') ? std::nullopt : take_number(line);
    for (std::size_t i = 0; cpu && i < cpus.size(); ++i) {
      if (cpus[i] != *cpu) {
        continue;
      }
      const std::optional<CoreTimes> read = take_times(line);
      if (!read) {
        return false;
      }
      times[i] = *read;
      ++found;
    }
  }
  return !cpus.empty() && found == cpus.size();
}

std::optional<std::uint64_t> parse_throttled_periods(std::string_view cpu_stat) {
  constexpr std::string_view key = "nr_throttled";
  while (!cpu_stat.empty()) {
    std::string_view line = take_line(cpu_stat);
    if (line.starts_with(key)) {
      line.remove_prefix(key.size());
      return take_number(line);
    }
  }
  return std::nullopt;
}

std::vector<path> groups_with_quota(std::string_view cgroup) {
  std::vector<path> groups;
  while (!cgroup.empty()) {  // lines "hierarchy:controllers:path"
    const std::string_view line = take_line(cgroup);
    const std::size_t first = line.find(':');
    const std::size_t second = line.find(':', first + 1);
    if (first == std::string_view::npos || second == std::string_view::npos) {
      continue;
    }
    const std::string controllers =
        "," + std::string(line.substr(first + 1, second - first - 1)) + ",";
    path mount;
    if (controllers.find(",cpu,") != std::string::npos) {
      mount = "cpu";
    } else if (controllers != ",,") {
      continue;
    }
    path below = path(line.substr(second + 1)).relative_path();
    for (; !below.empty(); below = below.parent_path()) {
      groups.push_back(mount / below);
    }
    groups.push_back(mount);
  }
  return groups;
}

ProcessUse process_use() {
  rusage usage{};
  if (getrusage(RUSAGE_SELF, &usage) != 0) {
    return {};
  }
  return {.involuntary_switches = usage.ru_nivcsw,
          .cpu_seconds = seconds(usage.ru_utime) + seconds(usage.ru_stime)};
}

SystemCounters::SystemCounters(std::vector<int> cpus, const path& root)
    : cpus_(std::move(cpus)), stat_(root / "proc/stat") {
  const auto configured = static_cast<std::size_t>(std::max(sysconf(_SC_NPROCESSORS_CONF), 1L));
  text_.resize(4096 + 128 * configured);  // for the lines of processors, which come first
  const path sys = root / "sys";
  for (const int cpu : cpus_) {
    const path heat =
        sys / "devices/system/cpu" / ("cpu" + std::to_string(cpu)) / "thermal_throttle";
    add_if_there(heat_, heat / "core_throttle_count");
    add_if_there(heat_, heat / "package_throttle_count");
  }
  for (const path& group : groups_with_quota(OpenFile(root / "proc/self/cgroup").text(text_))) {
    add_if_there(quotas_, sys / "fs/cgroup" / group / "cpu.stat");
  }
}

bool SystemCounters::read(std::span<CoreTimes> times) {
  return parse_core_times(stat_.text(text_), cpus_, times);
}

std::optional<std::uint64_t> SystemCounters::throttled() {
  std::optional<std::uint64_t> sum;
  const auto add = [&sum](std::optional<std::uint64_t> count) {
    if (count) {
      sum = sum.value_or(0) + *count;
    }
  };
  for (const OpenFile& file : heat_) {
    add(file.number());
  }
  for (const OpenFile& file : quotas_) {
    add(parse_throttled_periods(file.text(text_)));
  }
  return sum;
}

}  // namespace cnn::bench
