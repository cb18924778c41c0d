#pragma once

#include <optional>
#include <span>

#include "bench/compare/run.h"

namespace cnn::compare {

// Returns the logarithm of the ratio of step times of `candidate` to `base`, for two runs that took
// turns. Each turn is represented by the lower quartile of its steps, since other work lengthens
// some steps. Each turn is compared with the mean of the other run's turns before and after it, and
// the result is the median of these comparisons. So disturbances longer than a turn and drifts
// cancel in every comparison, and a few disturbed turns hardly move the median; the difference of
// whole-run medians has neither property. Returns nothing if too few turns lie between two of the
// other run, or if the files lack the ends of steps.
std::optional<double> interleaved_slowdown(std::span<const TimedStep> base,
                                           std::span<const TimedStep> candidate);

// Returns whether both runs overlap in time by the host's clock, since runs of different days may
// name one file of turns. True if the files lack the ends of steps.
bool may_be_interleaved(std::span<const TimedStep> base, std::span<const TimedStep> candidate);

}  // namespace cnn::compare
