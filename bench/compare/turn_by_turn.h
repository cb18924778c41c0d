#pragma once

#include <optional>
#include <span>

#include "bench/compare/run.h"

namespace cnn::compare {

// How much longer the steps of `fresh` take than those of `base`, as the logarithm of the ratio, of
// two runs that took turns. A turn counts by the lower quartile of its steps, since what other work
// does to steps is to lengthen some; each is held against the mean of the other run's turns before
// and after it; the median of these comparisons is the answer. So what lasts longer than a turn, or
// drifts, falls out of every single one, and what disturbs a few turns moves the median little; of
// the difference between two medians over whole runs neither is true. Nothing where too few turns
// lie between two of the other run, or where the files do not say when steps ended.
std::optional<double> slowdown_turn_by_turn(std::span<const TimedStep> base,
                                            std::span<const TimedStep> fresh);

// Whether both were up at once by the clock of the host. Runs of different days may name one file
// of turns. True where the files do not say when steps ended.
bool may_have_taken_turns(std::span<const TimedStep> base, std::span<const TimedStep> fresh);

}  // namespace cnn::compare
