#pragma once

#include <span>

#include "bench/flags/json.h"
#include "bench/flags/settings.h"

namespace cnn::bench {

// Returns section "config" of the result file: every flag with its effective value.
Json config_json(std::span<const Setting> settings);

}  // namespace cnn::bench
