#pragma once

#include <string>

#include "bench/machine/backend.h"

namespace cnn::bench {

// Implements --tune on a processor: adds rows that choose the kernels of convolutions by time to
// the backend's empty kernel table, sets `tuning`, and adds notes about the plan cache. The
// backend's device must exist and `threads` be the team of the calling thread, which must be the
// one that makes kernels. A cache that cannot be read is not used, with one note.
void add_cpu_tuning(const Config& config, const std::string& processor, int threads,
                    Backend& backend);

}  // namespace cnn::bench
