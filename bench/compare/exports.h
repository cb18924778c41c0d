#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "bench/compare/run.h"

namespace cnn::compare {

// Input formats of services that draw benchmark histories.
enum class ExportFormat : std::uint8_t { bencher, github_action_benchmark, csv };
ExportFormat export_format(std::string_view name);  // throws Error with all names

// The number exported to github-action-benchmark. A file contains only numbers for which bigger is
// better (tool customBiggerIsBetter) or smaller is better (customSmallerIsBetter).
enum class Measure : std::uint8_t { images_per_sec, step_seconds };
Measure measure_of(std::string_view name);  // throws Error with all names

// Returns runs in the format of such a service. Runs of one configuration form one benchmark, whose
// name contains model, batch, precision and machine and does not depend on other runs.
std::string export_text(std::vector<Run> runs, ExportFormat format, Measure measure);

}  // namespace cnn::compare
