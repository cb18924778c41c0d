#pragma once

#include <string>

namespace cnn::bench {

// Returns a bash script that completes the effective flags of cnn_benchmarks, and the values of
// flags with a known list; other values complete as file names.
std::string bash_completion();

}  // namespace cnn::bench
