#pragma once

#include <span>

#include "bench/flags/json.h"
#include "bench/flags/settings.h"

namespace cnn::bench {

// Section "config" of the result file: every flag with the value in force.
Json config_json(std::span<const Setting> settings);

}  // namespace cnn::bench
