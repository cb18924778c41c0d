#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "bench/flags/config.h"

namespace cnn::bench {

// A combination of flags that makes no sense.
struct Rule {
  bool (*broken)(const Config&);
  std::string_view message;
};

// All of them, in the order in which they are checked. Rules about flags that this version does not
// have yet stand here too, so that enabling such a flag is one word in its row.
std::span<const Rule> combination_rules();

// Throws Error(message) for the first rule that the configuration breaks.
void check_rules(const Config& config);

// One line for each flag that was set but cannot matter beside the others.
std::vector<std::string> idle_flags(const Config& config);

}  // namespace cnn::bench
