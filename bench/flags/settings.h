#pragma once

#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "bench/flags/flag_table.h"

namespace cnn::bench {

// Environment variables: {"HOROVOD_FUSION_THRESHOLD", "67108864"}.
using EnvironmentVariables = std::vector<std::pair<std::string, std::string>>;

// The value of one flag, with or without effect.
struct Setting {
  const Flag* flag = nullptr;
  Plain value{};       // the effective value
  bool given = false;  // on the command line
};

// Returns default values, one for each flag in the order of the help; older names have none.
const std::vector<Setting>& default_settings();

// Returns the setting of that flag; throws Error if there is none.
Setting& find_setting(std::span<Setting> settings, std::string_view name);

Config config_of(std::span<const Setting> settings);

}  // namespace cnn::bench
