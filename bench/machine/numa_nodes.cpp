#include "bench/machine/numa_nodes.h"

#include <algorithm>
#include <charconv>
#include <fstream>
#include <iterator>
#include <map>
#include <string>
#include <system_error>

namespace cnn::bench {
namespace {

using std::filesystem::path;

constexpr int max_cpus = 1 << 16;

// Takes a number from the front of the text; nothing if there is no valid processor number.
std::optional<int> take_number(std::string_view& text) {
  int number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || number < 0 || number >= max_cpus) {
    return std::nullopt;
  }
  text.remove_prefix(static_cast<std::size_t>(end - text.data()));
  return number;
}

bool take(std::string_view& text, char wanted) {
  const bool is_there = text.starts_with(wanted);
  text.remove_prefix(is_there ? 1 : 0);
  return is_there;
}

// Returns the number of a folder "node12"; nothing for other names.
std::optional<int> node_number(const path& folder) {
  const std::string name = folder.filename().string();
  std::string_view rest(name);
  if (!rest.starts_with("node")) {
    return std::nullopt;
  }
  rest.remove_prefix(std::string_view("node").size());
  const std::optional<int> number = take_number(rest);
  return rest.empty() ? number : std::nullopt;
}

// Returns the processors of each NUMA node of the machine.
std::map<int, std::vector<int>> numa_nodes(const path& root) {
  std::map<int, std::vector<int>> nodes;
  std::error_code ignored;
  const path folder = root / "sys/devices/system/node";
  for (const auto& entry : std::filesystem::directory_iterator(folder, ignored)) {
    if (const std::optional<int> node = node_number(entry.path())) {
      std::string line;
      std::getline(std::ifstream(entry.path() / "cpulist"), line);
      nodes.emplace(*node, parse_cpu_list(line));
    }
  }
  return nodes;
}

// Returns the intersection of both lists, in the order of the first.
std::vector<int> shared_processors(std::span<const int> cpus, std::span<const int> others) {
  std::vector<int> shared;
  std::ranges::copy_if(cpus, std::back_inserter(shared),
                       [&](int cpu) { return std::ranges::find(others, cpu) != others.end(); });
  return shared;
}

}  // namespace

std::vector<int> parse_cpu_list(std::string_view text) {
  while (text.ends_with('\n') || text.ends_with(' ')) {
    text.remove_suffix(1);
  }
  std::vector<int> cpus;
  do {
    const std::optional<int> first = take_number(text);
    const std::optional<int> last = first && take(text, '-') ? take_number(text) : first;
    if (!last) {
      return {};
    }
    for (int cpu = *first; cpu <= *last; ++cpu) {
      cpus.push_back(cpu);
    }
  } while (take(text, ','));
  return text.empty() ? cpus : std::vector<int>();
}

std::optional<int> numa_node_of(std::span<const int> cpus, const path& root) {
  for (const auto& [node, of_node] : numa_nodes(root)) {
    if (!cpus.empty() && shared_processors(cpus, of_node).size() == cpus.size()) {
      return node;
    }
  }
  return std::nullopt;
}

std::vector<int> on_first_numa_node(std::span<const int> cpus, const path& root) {
  for (const auto& [node, of_node] : numa_nodes(root)) {
    if (std::vector<int> shared = shared_processors(cpus, of_node); !shared.empty()) {
      return shared;
    }
  }
  return {cpus.begin(), cpus.end()};
}

}  // namespace cnn::bench
