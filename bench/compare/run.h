#pragma once

#include <cstddef>
#include <initializer_list>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace cnn::compare {

using Json = nlohmann::json;

// The newest form of the result file that is understood; files without "format" are of form 1.
inline constexpr int newest_format = 2;

struct TimedStep {
  double seconds = 0;
  bool disturbed = false;  // as the run recorded it
  double ended = 0;        // seconds on the steady clock of the host; 0 if the file does not say
};

// The parts of one run that a comparison needs.
struct Run {
  std::string path;
  std::string started;  // UTC; two runs of one second have different fractions
  // The file by which this run took turns with another of the same file; empty if it did not.
  std::string turns;
  // The facts that make runs comparable, by their name for a message: model, batch, device, flags,
  // ...
  std::map<std::string, std::string> identity;
  // Facts that may explain a difference: libraries, driver, commit, layout.
  std::map<std::string, std::string> surroundings;
  std::vector<TimedStep> steps;
  double images_per_step = 0;
  Json json;  // the whole file
};

// Reads and checks a result file of --result_json. Throws Error in one line that begins with the
// path: missing, a folder, cut off, not JSON, not a result, of a newer form, a run that failed or
// timed nothing.
Run read_run(const std::string& path);

// The same of a text.
Run parse_run(const std::string& path, const std::string& text);

// Fills identity and surroundings from `json` and images_per_step.
void add_facts(Run& run);

// The value at a path such as {"machine", "cpu", "name"}, as text; empty if there is none.
std::string text_at(const Json& json, std::initializer_list<const char*> keys);
// "--seed: 1 before, 2 now" for each flag of two configurations that may change what steps compute.
std::vector<std::string> unlike_flags(const Json& base, const Json& fresh);
// The whole file. Throws Error in one line that begins with the path.
std::string read_text(const std::string& path);

// One number for a run.
struct RunSummary {
  double seconds = 0;  // median of the steps that count
  std::size_t steps = 0, disturbed = 0;
  // More than half of the steps: all of them count then, and the run tells of the machine's other
  // work as much as of its own.
  bool disturbed_run = false;
};

// The median: a step that something delays moves it by one rank, however long the delay. Steps that
// the run recorded as disturbed do not count where enough others are left.
RunSummary summarise(const std::vector<TimedStep>& steps);

}  // namespace cnn::compare
