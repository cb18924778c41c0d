#pragma once

#include <string>

namespace cnn::bench {

// Returns a script for bash that completes the flags of cnn_benchmarks that act, and the values of
// those with a known list; other values are completed as file names.
std::string bash_completion();

}  // namespace cnn::bench
