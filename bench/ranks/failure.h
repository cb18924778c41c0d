#pragma once

#include <exception>

#include "allreduce/world.h"
#include "bench/report/console.h"

namespace cnn::bench {

class Interruption;

// Reports a failure of this rank, once if all ranks report the same, and notifies the other
// processes, so that they do not wait for this one. world: null for a single process.
void report_failure(const std::exception& error, allreduce::World* world,
                    const Interruption& interruption, Console& console);

// Reports invalid flags before a launcher's processes have connected, once if all ranks report the
// same. If the processes cannot connect, each rank reports them.
void report_wrong_flags(const std::exception& error, Console& console);

}  // namespace cnn::bench
