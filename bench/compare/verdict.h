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

enum class Verdict : std::uint8_t { no_regression, improvement, regression, cannot_tell };
std::string_view name_of(Verdict verdict);  // "no regression"

// A regression is a slowdown of which chance is excluded (one-sided, corrected for the number of
// configurations) and which is worth a look: its estimate is at least minimum_effect. That the
// *true* slowdown exceeds the minimum is not tested: to show that of 1 % against 0.5 % would take
// twice the runs. Where there is none, "no regression" is said only if a slowdown of `resolution`
// would have shown: the upper bound of the slowdown is below it. Else nobody can tell.
struct Settings {
  double minimum_effect = 0.005;  // of the step time
  double confidence = 0.99;
  double resolution = 0.03;
};

struct Side {
  std::vector<RunSummary> runs;  // all, as the configuration has them
  std::vector<bool> counts;      // by run; those that other work disturbed do not, see verdict.cpp
  double seconds = 0;            // of a step: geometric mean of the runs that count
  double images_per_sec = 0;

  std::size_t counted() const;
};

// The verdict on one configuration.
struct Finding {
  std::string label;
  Side base, fresh;
  Difference difference;
  std::vector<double> slowdowns;      // in logarithms, of the pairs that count
  double p_slower = 1, p_faster = 1;  // corrected
  Verdict verdict = Verdict::cannot_tell;
  // Other work disturbed most runs of one side and left the other enough: its slowness says nothing
  // about the program, so the verdict is cannot_tell.
  bool one_side_disturbed = false;
  // How many more runs on each side, or pairs, a verdict takes where none can be told, if they
  // scatter as these do; where one side was disturbed, undisturbed runs that scatter as those of
  // the other. Nothing if 200 would not do.
  std::optional<std::size_t> more_runs{};
  std::vector<std::string> notes;  // whole sentences
};

// Slower by so many per cent.
double percent(double log_difference);

std::vector<Finding> judge(const std::vector<Configuration>& configurations,
                           const Settings& settings);

// 1 if there is a regression, else 2 if one cannot be told, else 0.
int exit_code_of(const std::vector<Finding>& findings);

}  // namespace cnn::compare
