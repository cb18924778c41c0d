#pragma once

#include <filesystem>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

namespace cnn::bench {

// The numbers in a list of the kernel such as "0-3,8,10-11\n". Empty if it is no such list.
std::vector<int> parse_cpu_list(std::string_view text);

// The NUMA node that has all of these processors. Nothing: they are on several nodes, or the system
// does not tell. root: of its files.
std::optional<int> numa_node_of(std::span<const int> cpus, const std::filesystem::path& root = "/");

// Those of these processors that are on the first NUMA node that has any of them; all of them where
// the system does not tell.
std::vector<int> on_first_numa_node(std::span<const int> cpus,
                                    const std::filesystem::path& root = "/");

}  // namespace cnn::bench
