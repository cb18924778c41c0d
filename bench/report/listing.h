#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "bench/flags/config.h"
#include "bench/machine/backend.h"

namespace cnn::bench {

// Returns the output of --version: program, commit, and the libraries of each backend, or why it is
// unavailable here.
std::vector<std::string> version_lines(std::string_view program,
                                       std::span<const BackendKind> backends);

// Returns the output of --list_models: a table of all networks, or of one data set's. Throws Error
// if the data set has no network.
std::vector<std::string> model_lines(const data::Row* data_set);

// Returns the output of the given listing flags, the program's version first.
std::vector<std::string> listing(std::string_view program, const Config& config,
                                 std::span<const BackendKind> backends);

}  // namespace cnn::bench
