#pragma once

#include <cstddef>
#include <initializer_list>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace cnn::compare {

using Json = nlohmann::json;

// The newest supported format of result files; files without "format" have format 1.
inline constexpr int newest_format = 2;

struct TimedStep {
  double seconds = 0;
  bool disturbed = false;  // recorded by the run
  double ended = 0;        // seconds of the host's steady clock; 0 if the file lacks it
};

// The parts of a run that a comparison needs.
struct Run {
  std::string path;
  std::string started;  // UTC; two runs of one second have different fractions
  // The file through which this run took turns with another; empty if it did not.
  std::string turns;
  // Facts that must agree for a comparison, by their name in messages: model, batch, device, flags,
  // ...
  std::map<std::string, std::string> identity;
  // Facts that may explain a difference: libraries, driver, commit, layout.
  std::map<std::string, std::string> surroundings;
  std::vector<TimedStep> steps;
  double images_per_step = 0;
  Json json;  // the whole file
};

// Reads and checks a result file of --result_json. Throws Error in one line that begins with the
// path: missing, a folder, truncated, not JSON, not a result, a newer format, a failed run or one
// without timed steps.
Run read_run(const std::string& path);

// Parses the text of a result file.
Run parse_run(const std::string& path, const std::string& text);

// Fills identity and surroundings from `json` and images_per_step.
void add_facts(Run& run);

// Returns the value at a path such as {"machine", "cpu", "name"}, as text; empty if it is missing.
std::string text_at(const Json& json, std::initializer_list<const char*> keys);
// Returns "--seed: 1 before, 2 now" for each differing flag of two configurations that may change
// the computation.
std::vector<std::string> unlike_flags(const Json& base, const Json& candidate);
// Returns the whole file. Throws Error in one line that begins with the path.
std::string read_text(const std::string& path);

// The summary of a run.
struct RunSummary {
  double seconds = 0;  // median of the counted steps
  std::size_t steps = 0, disturbed = 0;
  // Whether over half of the steps were disturbed: then all of them count, and the time reflects
  // the machine's other work as well.
  bool disturbed_run = false;
};

// Returns the median, which one delayed step moves by only one rank. Excludes steps recorded as
// disturbed if enough others are left.
RunSummary summarise(const std::vector<TimedStep>& steps);

}  // namespace cnn::compare
