#pragma once

#include <string>
#include <vector>

#include "bench/compare/verdict.h"

namespace cnn::compare {

// Formats findings as text that ends with a line break; prints nothing.

// Returns a table for a terminal, then a sentence on each configuration and its notes.
std::string terminal_text(const std::vector<Finding>& findings, const Settings& settings);

// Returns the same content as Markdown, for the summary of a CI job.
std::string markdown_text(const std::vector<Finding>& findings, const Settings& settings);

// Returns JSON for other tools: one object with "settings", "exit_code" and "configurations". Times
// in seconds, effects in per cent of the step time (slower is positive); null if undetermined.
std::string json_text(const std::vector<Finding>& findings, const Settings& settings);

// Returns "-1.20 to +4.50 %": both bounds of the slowdown, each with this confidence.
std::string bounds_text(const Difference& difference, double confidence);

// Returns "slower by 3.1 % (99 % sure of more than 2.2 %)".
std::string sentence(const Finding& finding, const Settings& settings);

}  // namespace cnn::compare
