#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "bench/compare/configurations.h"
#include "bench/compare/difference.h"
#include "bench/compare/run.h"

namespace cnn::compare {

enum class Verdict : std::uint8_t { no_regression, improvement, regression, inconclusive };
std::string_view name_of(Verdict verdict);  // "no regression"

// A regression is a slowdown that is statistically significant (one-sided, corrected for the number
// of configurations) and relevant: its estimate is at least minimum_effect. The test does not
// require that the *true* slowdown exceeds the minimum: to show that of 1 % against 0.5 % would
// take twice the runs. Without a regression, the verdict is "no regression" only if a slowdown of
// `resolution`, or of minimum_effect if that is larger, would have shown, that is the upper bound
// of the slowdown is below it; else it is "cannot tell".
struct Settings {
  double minimum_effect = 0.005;  // fraction of the step time
  double confidence = 0.99;
  double resolution = 0.03;
};

// Returns the slowdown, as a fraction, that the bounds must exclude for "no regression".
double excluded_slowdown(const Settings& settings);

struct Side {
  std::vector<RunSummary> runs;  // all runs of the configuration
  std::vector<bool> counts;      // by run; false for runs disturbed by other work, see verdict.cpp
  double seconds = 0;            // per step: geometric mean of the counted runs
  double images_per_sec = 0;

  std::size_t counted() const;
};

// The verdict on one configuration.
struct Finding {
  std::string label;
  Side base, candidate;
  Difference difference;
  std::vector<double> slowdowns;      // in logarithms, of the counted pairs
  double p_slower = 1, p_faster = 1;  // corrected
  Verdict verdict = Verdict::inconclusive;
  // Other work disturbed most runs of one side but not of the other: the difference says nothing
  // about the program, so the verdict is inconclusive.
  bool one_side_disturbed = false;
  // Additional runs on each side, or pairs, needed for a verdict if it is inconclusive, assuming
  // the same scatter; if one side was disturbed, undisturbed runs that scatter like the other
  // side's. Nothing if 200 would not suffice.
  std::optional<std::size_t> more_runs{};
  std::vector<std::string> notes;  // sentences
};

// Returns the slowdown in per cent.
double percent(double log_difference);

std::vector<Finding> judge(const std::vector<Configuration>& configurations,
                           const Settings& settings);

// Returns 1 if there is a regression, else 2 if one verdict is inconclusive, else 0.
int exit_code_of(const std::vector<Finding>& findings);

}  // namespace cnn::compare
