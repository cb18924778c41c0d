#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "bench/compare/run.h"

namespace cnn::compare {

// Formats of services that draw the history of benchmarks.
enum class ExportFormat : std::uint8_t { bencher, github_action_benchmark, csv };
ExportFormat export_format(std::string_view name);  // throws Error that lists the names

// The number that entries for github-action-benchmark have. It takes a file of numbers that are all
// the better the bigger (tool customBiggerIsBetter), or the smaller (customSmallerIsBetter).
enum class Measure : std::uint8_t { images_per_sec, step_seconds };
Measure measure_of(std::string_view name);  // likewise

// Runs as such a service takes them; those of one configuration are one benchmark, whose name says
// model, batch, precision and machine and does not depend on the other runs of the call.
std::string export_text(std::vector<Run> runs, ExportFormat format, Measure measure);

}  // namespace cnn::compare
