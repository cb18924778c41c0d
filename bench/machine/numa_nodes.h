#pragma once

#include <filesystem>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

namespace cnn::bench {

// Parses a list of the kernel such as "0-3,8,10-11\n". Empty if the text is not a list.
std::vector<int> parse_cpu_list(std::string_view text);

// Returns the NUMA node of all these processors. Nothing: they span several nodes, or the system
// does not tell. root: of the system's files.
std::optional<int> numa_node_of(std::span<const int> cpus, const std::filesystem::path& root = "/");

// Returns the processors that are on the first NUMA node with any of them; all of them if the
// system does not tell.
std::vector<int> on_first_numa_node(std::span<const int> cpus,
                                    const std::filesystem::path& root = "/");

}  // namespace cnn::bench
