#pragma once

#include <string>
#include <vector>

#include "bench/compare/configurations.h"
#include "bench/compare/history.h"
#include "bench/compare/verdict.h"

namespace cnn::page {

// One self-contained HTML page: style and drawings are inline, nothing is loaded and no script
// runs, so that it opens from a mail or a CI artifact, on a phone, and in light and dark as the
// reader's system is. Parts of which a result file says nothing are left out.

// The verdicts, each configuration's effect with its bounds, and of each configuration one run of
// either side.
std::string comparison_page(const std::vector<compare::Configuration>& configurations,
                            const std::vector<compare::Finding>& findings,
                            const compare::Settings& settings);

// The speed of each run of a history, and where it changed.
std::string history_page(const std::vector<compare::Series>& all,
                         const compare::Settings& settings);

// A single run, from the text of its result file. Throws Error if that is no JSON.
std::string run_page(const std::string& result_text);

}  // namespace cnn::page
