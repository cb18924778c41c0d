#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "bench/flags/config.h"
#include "bench/machine/backend.h"

namespace cnn::bench {

// The answer to --version: program, commit, and the libraries of each backend, or why it cannot be
// used here.
std::vector<std::string> version_lines(std::string_view program,
                                       std::span<const BackendKind> backends);

// The answer to --list_models: a table of all networks, or of those of one data set. Throws Error
// if no network is for it.
std::vector<std::string> model_lines(const data::Row* data_set);

// Returns the text of the flags that are given, the version of the program first.
std::vector<std::string> listing(std::string_view program, const Config& config,
                                 std::span<const BackendKind> backends);

}  // namespace cnn::bench
