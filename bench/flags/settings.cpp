#include "bench/flags/settings.h"

#include <algorithm>
#include <fmt/format.h>

#include "runtime/error.h"

namespace cnn::bench {

const std::vector<Setting>& default_settings() {
  static const std::vector<Setting> defaults = [] {
    std::vector<Setting> settings;
    for (const FlagGroup& group : flag_groups()) {
      for (const Flag& flag : group.flags) {
        if (flag.renamed_to.empty()) {
          settings.push_back({.flag = &flag, .value = default_value(flag)});
        }
      }
    }
    return settings;
  }();
  return defaults;
}

Setting& find_setting(std::span<Setting> settings, std::string_view name) {
  const auto found = std::ranges::find_if(
      settings, [&](const Setting& setting) { return setting.flag->name == name; });
  if (found == settings.end()) {
    throw Error(fmt::format("there is no setting of a flag --{}", name));
  }
  return *found;
}

Config config_of(std::span<const Setting> settings) {
  Config config;
  for (const Setting& setting : settings) {
    if (setting.flag->member != nullptr) {
      setting.flag->member->store(config, setting.value);
    }
  }
  return config;
}

}  // namespace cnn::bench
