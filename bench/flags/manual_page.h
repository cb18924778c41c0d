#pragma once

#include <string>

namespace cnn::bench {

// Returns the manual page of cnn_benchmarks in section 1, in the man macros of roff.
std::string manual_page();

}  // namespace cnn::bench
