#pragma once

#include <exception>

#include "allreduce/world.h"
#include "bench/report/console.h"

namespace cnn::bench {

class Interruption;

// The run has failed on this rank: says why, once where all ranks say the same, and tells the other
// processes, so that they do not wait for it. world: null where there are none.
void tell_failure(const std::exception& error, allreduce::World* world,
                  const Interruption& interruption, Console& console);

// The flags are wrong, before the processes of a launcher have met: says why, once where all ranks
// say the same. Where they cannot meet, each rank says it.
void tell_wrong_flags(const std::exception& error, Console& console);

}  // namespace cnn::bench
