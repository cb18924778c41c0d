#pragma once

#include <string>

#include "bench/compare/run.h"

namespace cnn::page {

// Returns the main results of a run as a row of tiles in HTML, without those that its result file
// lacks.
std::string tiles_of(const compare::Json& json);

}  // namespace cnn::page
