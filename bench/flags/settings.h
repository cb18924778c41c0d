#pragma once

#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "bench/flags/flag_table.h"

namespace cnn::bench {

// Variables of the environment, {"HOROVOD_FUSION_THRESHOLD", "67108864"}.
using EnvironmentVariables = std::vector<std::pair<std::string, std::string>>;

// The value of one flag, whether it acts or not.
struct Setting {
  const Flag* flag = nullptr;
  Plain value{};       // in force
  bool given = false;  // on the command line
};

// One for each flag, in the order of the help; older names have none. The default values.
std::vector<Setting> default_settings();

// The one of that flag; throws Error if there is none.
Setting& find_setting(std::span<Setting> settings, std::string_view name);

Config config_of(std::span<const Setting> settings);

}  // namespace cnn::bench
