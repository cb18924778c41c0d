#pragma once

#include "bench/flags/json.h"
#include "bench/plan/job.h"
#include "bench/report/console.h"

namespace cnn::bench {

struct RankContext;

// Implements --find_max_batch and --find_max_image_size: prints the largest size that fits in
// memory, on this device or the simulated one, and fills the section "search" of the result. Only
// plans; runs nothing. Throws DoesNotFit if no size fits.
void report_search(const Job& job, const RankContext& context, Console& console, Json& result);

}  // namespace cnn::bench
