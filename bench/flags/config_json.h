#pragma once

#include "bench/flags/config.h"
#include "bench/flags/json.h"

namespace cnn::bench {

// Section "config" of the result file: every flag with the value in force; older names of flags are
// left out.
Json config_json(const Config& config);

}  // namespace cnn::bench
