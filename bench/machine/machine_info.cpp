#include "bench/machine/machine_info.h"

#include <array>
#include <fstream>
#include <iterator>
#include <sys/resource.h>
#include <unistd.h>

#include "bench/flags/number_text.h"

namespace cnn::bench {

namespace {

std::string_view trimmed(std::string_view text) {
  const std::size_t begin = text.find_first_not_of(" \t");
  if (begin == std::string_view::npos) {
    return {};
  }
  return text.substr(begin, text.find_last_not_of(" \t") + 1 - begin);
}

// Calls visit(key, value) for each "key : value" line.
template <class Visit>
void for_each_entry(std::string_view text, Visit visit) {
  while (!text.empty()) {
    const std::size_t end = text.find('\n');
    const std::string_view line = text.substr(0, end);
    const std::size_t colon = line.find(':');
    if (colon != std::string_view::npos) {
      visit(trimmed(line.substr(0, colon)), trimmed(line.substr(colon + 1)));
    }
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
  }
}

std::int64_t kibibytes(std::string_view value) {  // "16384 kB"
  return read_integer(value.substr(0, value.find(' '))).value_or(0) * 1024;
}

std::string content(const char* path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), {}};
}

}  // namespace

MachineInfo parse_machine_info(std::string_view cpuinfo, std::string_view meminfo) {
  MachineInfo info{.cpu_name = "unknown"};
  for_each_entry(cpuinfo, [&](std::string_view key, std::string_view value) {
    if (key == "processor") {
      ++info.processors;
    } else if (key == "model name") {
      info.cpu_name = value;
    } else if (key == "cpu MHz" && info.mhz == 0) {
      info.mhz = read_float(value).value_or(0);
    }
  });
  for_each_entry(meminfo, [&](std::string_view key, std::string_view value) {
    if (key == "MemTotal") {
      info.memory_total = kibibytes(value);
    } else if (key == "MemAvailable") {
      info.memory_available = kibibytes(value);
    }
  });
  return info;
}

MachineInfo read_machine_info() {
  MachineInfo info = parse_machine_info(content("/proc/cpuinfo"), content("/proc/meminfo"));
  std::array<char, 256> name{};
  if (gethostname(name.data(), name.size() - 1) == 0) {
    info.host = name.data();
  }
  return info;
}

std::optional<std::int64_t> process_peak_bytes() {
  rusage usage{};
  if (getrusage(RUSAGE_SELF, &usage) != 0) {
    return std::nullopt;
  }
  return std::int64_t{usage.ru_maxrss} * 1024;  // Linux counts in KiB
}

}  // namespace cnn::bench
