#pragma once

#include "bench/compare/arguments.h"

namespace cnn::compare {

// Throws Error, which names both, if a report would replace a file that the comparison reads or
// another report. Devices, such as /dev/stdout, may be named any number of times.
void check_output_files(const Arguments& arguments);

}  // namespace cnn::compare
