#include "bench/machine/caches.h"

#include <charconv>
#include <fstream>
#include <map>
#include <set>
#include <string>
#include <utility>

namespace cnn::bench {
namespace {

using std::filesystem::path;

std::string first_line(const path& file) {
  std::ifstream in(file);
  std::string line;
  std::getline(in, line);
  return line;
}

}  // namespace

std::int64_t parse_cache_size(std::string_view text) {
  std::int64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || number < 0) {
    return 0;
  }
  const std::string_view unit = text.substr(static_cast<std::size_t>(end - text.data()));
  return unit == "K" ? number << 10 : unit == "M" ? number << 20 : unit.empty() ? number : 0;
}

std::vector<std::int64_t> cache_bytes(std::span<const int> cpus, const path& root) {
  std::map<std::string, std::int64_t> by_level;
  std::set<std::pair<std::string, std::string>> seen;  // level, sharing processors
  for (const int cpu : cpus) {
    const path folder = root / "sys/devices/system/cpu" / ("cpu" + std::to_string(cpu)) / "cache";
    for (int index = 0; std::filesystem::exists(folder / ("index" + std::to_string(index)));
         ++index) {
      const path cache = folder / ("index" + std::to_string(index));
      const std::string level = first_line(cache / "level");
      const bool for_data = first_line(cache / "type") != "Instruction";
      if (level > "1" && for_data &&
          seen.insert({level, first_line(cache / "shared_cpu_list")}).second) {
        by_level[level] += parse_cache_size(first_line(cache / "size"));
      }
    }
  }
  std::vector<std::int64_t> bytes;
  for (const auto& [level, sum] : by_level) {
    if (sum > (bytes.empty() ? 0 : bytes.back())) {
      bytes.push_back(sum);
    }
  }
  return bytes;
}

}  // namespace cnn::bench
