#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "bench/compare/exports.h"
#include "bench/compare/verdict.h"

namespace cnn::compare {

// The command line of cnn_compare. An output is a path, or empty for stdout instead of the table.
struct Arguments {
  std::vector<std::string> base, candidate;
  Settings settings;
  bool across_machines = false;
  bool bits = false;  // compare two files of --hash_file, base.front() and candidate.front()
  bool help = false, version = false;
  std::optional<std::string> json, markdown, html;
  std::optional<std::string> history;         // file of --history to search for changes
  std::optional<ExportFormat> export_as;      // print `base` in this format
  Measure measure = Measure::images_per_sec;  // with export_as
};

// Parses the words. Options may follow files; the first -- separates the two sides. Throws Error in
// one line.
Arguments parse_arguments(std::span<const std::string> words);

std::string_view help_text();

}  // namespace cnn::compare
