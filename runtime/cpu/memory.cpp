#include "runtime/cpu/memory.h"

#include <algorithm>
#include <fstream>
#include <limits>
#include <optional>
#include <string>

#include "runtime/error.h"

namespace cnn {
namespace {

using std::filesystem::path;

constexpr std::size_t unlimited = std::numeric_limits<std::size_t>::max();

// Returns the number after `key` in a file of lines "key number ...".
std::optional<std::size_t> number_behind(const path& file, const std::string& key) {
  std::ifstream in(file);
  std::string line;
  while (std::getline(in, line)) {
    if (line.starts_with(key)) {
      const std::size_t digits = line.find_first_of("0123456789", key.size());
      return digits == std::string::npos ? std::nullopt
                                         : std::optional(std::stoull(line.substr(digits)));
    }
  }
  return std::nullopt;
}

// Reads a file with one number; returns nothing for "max", which means no limit.
std::optional<std::size_t> number_in(const path& file) {
  std::ifstream in(file);
  std::size_t number = 0;
  return in >> number ? std::optional(number) : std::nullopt;
}

struct Names {
  const char* limit;
  const char* usage;
  const char* reclaimable;  // key in memory.stat: file pages that the kernel gives up first
};
constexpr Names version1{"memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file "};
constexpr Names version2{"memory.max", "memory.current", "inactive_file "};

std::size_t left_in_group(const path& group, const Names& names) {
  const auto limit = number_in(group / names.limit);
  const auto usage = number_in(group / names.usage);
  if (!limit || !usage) {
    return unlimited;
  }
  const std::size_t cache =
      std::min(number_behind(group / "memory.stat", names.reclaimable).value_or(0), *usage);
  const std::size_t held = *usage - cache;
  return *limit > held ? *limit - held : 0;
}

// Returns the smallest remainder of a cgroup and its parents, up to the mount. Inside a container
// the path may name a group that only exists outside: then only the mount itself is readable.
std::size_t left_up_to(const path& mount, const std::string& group, const Names& names) {
  std::size_t left = left_in_group(mount, names);
  for (path below = path(group).relative_path(); !below.empty(); below = below.parent_path()) {
    left = std::min(left, left_in_group(mount / below, names));
  }
  return left;
}

std::size_t left_in_groups(const path& root) {
  std::ifstream in(root / "proc/self/cgroup");  // lines "hierarchy:controllers:path"
  std::size_t left = unlimited;
  std::string line;
  while (std::getline(in, line)) {
    const std::size_t first = line.find(':');
    const std::size_t second = line.find(':', first + 1);
    if (first == std::string::npos || second == std::string::npos) {
      continue;
    }
    const std::string controllers = "," + line.substr(first + 1, second - first - 1) + ",";
    const std::string group = line.substr(second + 1);
    if (controllers == ",,") {
      left = std::min(left, left_up_to(root / "sys/fs/cgroup", group, version2));
    } else if (controllers.find(",memory,") != std::string::npos) {
      left = std::min(left, left_up_to(root / "sys/fs/cgroup/memory", group, version1));
    }
  }
  return left;
}

}  // namespace

std::size_t available_memory(const path& root) {
  const path meminfo = root / "proc/meminfo";
  const auto kibibytes = number_behind(meminfo, "MemAvailable:");
  if (!kibibytes) {
    throw Error("cannot read MemAvailable from " + meminfo.string() +
                ": give the memory of the device as an option");
  }
  return std::min(*kibibytes * 1024, left_in_groups(root));
}

}  // namespace cnn
