#pragma once

#include <string>
#include <vector>

#include "bench/compare/configurations.h"
#include "bench/compare/history.h"
#include "bench/compare/verdict.h"

namespace cnn::page {

// Builds one self-contained HTML page with inline style and drawings, without scripts or loaded
// resources, so that it opens from a mail or a CI artifact, on a phone, and in light and dark mode.
// Omits sections without data in the result file.

// Returns the verdicts, each configuration's effect with its bounds, and one run of each side per
// configuration.
std::string comparison_page(const std::vector<compare::Configuration>& configurations,
                            const std::vector<compare::Finding>& findings,
                            const compare::Settings& settings);

// Returns the speed of each run of a history, and its changes.
std::string history_page(const std::vector<compare::Series>& all,
                         const compare::Settings& settings);

// Returns the page of a single run from the text of its result file. Throws Error if that is not
// JSON.
std::string run_page(const std::string& result_text);

}  // namespace cnn::page
