#pragma once

#include <cstdint>
#include <memory>

#include "bench/flags/json.h"
#include "bench/plan/compile.h"
#include "bench/plan/job.h"
#include "bench/report/console.h"
#include "data/feeder.h"

namespace cnn::bench {

class Interruption;
struct RankContext;

// Returns the number of reader threads per device: --datasets_num_private_threads, else as many as
// the step leaves idle.
int input_threads(const Job& job, const RankContext& context);

// Returns the feeder of a phase, from that global step on; null: input is synthetic.
std::unique_ptr<data::Feeder> make_feeder(const Job& job, const RankContext& context, Phase phase,
                                          std::int64_t first_step);

// Implements --input_only: reads and preprocesses the batches of the run without computing, prints
// the speed, and fills the section "input" of the result.
void report_input(const Job& job, const RankContext& context, const Interruption& interruption,
                  Console& console, Json& result);

}  // namespace cnn::bench
