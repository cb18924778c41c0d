#include "bench/machine/numa_nodes.h"

#include <algorithm>
#include <charconv>
#include <fstream>
#include <string>
#include <system_error>

namespace cnn::bench {
namespace {

using std::filesystem::path;

constexpr int most_cpus = 1 << 16;

// Takes a number from the front of the text; nothing if there is none, or one that is no processor.
std::optional<int> take_number(std::string_view& text) {
  int number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || number < 0 || number >= most_cpus) {
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

// The number of a folder "node12"; nothing for other names.
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
  std::error_code ignored;
  const path folder = root / "sys/devices/system/node";
  for (const auto& entry : std::filesystem::directory_iterator(folder, ignored)) {
    const std::optional<int> node = node_number(entry.path());
    if (!node) {
      continue;
    }
    std::string line;
    std::getline(std::ifstream(entry.path() / "cpulist"), line);
    const std::vector<int> of_node = parse_cpu_list(line);
    const auto is_there = [&](int cpu) { return std::ranges::find(of_node, cpu) != of_node.end(); };
    if (!cpus.empty() && std::ranges::all_of(cpus, is_there)) {
      return node;
    }
  }
  return std::nullopt;
}

}  // namespace cnn::bench
