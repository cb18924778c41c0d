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

// Threads that read for each device: what --datasets_num_private_threads says, else as many as the
// step leaves.
int input_threads(const Job& job, const RankContext& context);

// The batches of a phase, from that global step on; null: input is synthetic.
std::unique_ptr<data::Feeder> make_feeder(const Job& job, const RankContext& context, Phase phase,
                                          std::int64_t first_step);

// --input_only: reads and preprocesses the batches of the run, computes nothing, prints how fast
// that was, and fills the section "input" of the result.
void report_input(const Job& job, const RankContext& context, const Interruption& interruption,
                  Console& console, Json& result);

}  // namespace cnn::bench
