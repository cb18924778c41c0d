#include "allreduce/limits.h"

#include <algorithm>
#include <array>
#include <fstream>
#include <string>
#include <system_error>
#include <utility>

namespace cnn::allreduce {
namespace {

namespace fs = std::filesystem;

int machines_of(const Limits& limits) {
  return limits.host_of.empty() ? 1 : *std::ranges::max_element(limits.host_of) + 1;
}

std::string first_line(const fs::path& file) {
  std::string line;
  std::getline(std::ifstream(file), line);
  return line;
}

// Returns the number at the start of a file, such as 100 of "100 Gb/sec (4X EDR)"; 0 or less if the
// system does not know it.
double number_in(const fs::path& file) {
  try {
    return std::stod(first_line(file));
  } catch (const std::exception&) {
    return 0;
  }
}

std::vector<fs::path> entries_of(const fs::path& folder) {
  std::error_code ignored;
  std::vector<fs::path> entries;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder, ignored)) {
    entries.push_back(entry.path());
  }
  return entries;
}

// Returns the bits per second of each line out of this host; 0 for one that is unknown.
std::vector<double> lines_of(const fs::path& root) {
  constexpr double mega = 1e6, giga = 1e9;
  std::vector<double> lines;
  for (const fs::path& net : entries_of(root / "sys/class/net")) {
    // Leaves out virtual interfaces, whose speed is only nominal.
    if (fs::exists(net / "device") && first_line(net / "operstate") == "up") {
      lines.push_back(mega * number_in(net / "speed"));
    }
  }
  for (const fs::path& adapter : entries_of(root / "sys/class/infiniband")) {
    for (const fs::path& port : entries_of(adapter / "ports")) {
      if (first_line(port / "state").find("ACTIVE") != std::string::npos) {
        lines.push_back(giga * number_in(port / "rate"));
      }
    }
  }
  return lines;
}

}  // namespace

std::string_view source_name(Source source) {
  constexpr std::array<std::string_view, 6> names{"unknown",   "assumed", "measured",
                                                  "interface", "flag",    "derived"};
  return names[static_cast<std::size_t>(source)];
}

double memory_speed(const Limits& limits, double bytes) {
  double speed = limits.memory.empty() ? 0 : limits.memory.front().bytes_per_second;
  for (const MemorySpeed& measured : limits.memory) {
    speed = measured.bytes <= bytes ? measured.bytes_per_second : speed;
  }
  return speed;
}

Bound lower_bound(const Limits& limits, std::size_t elements, Wire wire) {
  const auto count = static_cast<double>(elements);
  const auto machines = static_cast<double>(machines_of(limits));
  const double bytes = count * sizeof(float);
  Bound bound;
  const auto raise = [&](double seconds, std::string_view by, Source source) {
    if (seconds > bound.seconds) {
      bound = {seconds, by, source};
    }
  };
  if (limits.host_of.size() < 2) {
    return bound;
  }
  raise(limits.hop, "latency", Source::measured);
  if (const double speed = memory_speed(limits, bytes); speed > 0) {
    raise(2 * bytes / speed, "memory", Source::measured);
  }
  if (limits.line > 0) {
    const double sent = 2 * (machines - 1) / machines * count * static_cast<double>(size_of(wire));
    raise(sent / limits.line, "line", limits.line_source);
  }
  return bound;
}

double interface_speed(const fs::path& root) {
  constexpr double bits = 8;
  double sum = 0;
  for (const double line : lines_of(root)) {
    if (line <= 0) {
      return 0;
    }
    sum += line / bits;
  }
  return sum;
}

}  // namespace cnn::allreduce
