#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "allreduce/calibrate.h"
#include "allreduce/choose.h"
#include "allreduce/simd/table.h"
#include "allreduce/transport.h"
#include "bench/flags/config.h"
#include "bench/flags/json.h"
#include "runtime/program.h"

namespace cnn::bench {

// Returns the loops for the instruction sets of a backend.
const allreduce::simd::Loops& loops_for(std::string_view instruction_sets);

// Sets the links that all ranks choose by: those of --comm_calibration_file if rank 0 finds an
// entry for as many ranks and hosts, else measured ones, which it writes there. Flags override
// both. All ranks call it together. Throws Error if the file cannot be read or written.
void calibrate(const CommFlags& flags, allreduce::Settings& settings,
               allreduce::Transport& transport, const allreduce::simd::Loops& loops);

// Returns "latency 0.50 us, ...": one line on the links of the cost model and their origins.
std::string links_text(const allreduce::Settings& settings);
// Returns "memory 21.3 GB/s (measured), ...": one line on the hardware limits behind bounds; empty
// if none is known.
std::string limits_text(const allreduce::Settings& settings);
// Returns the limits for a result file.
Json limits_json(const allreduce::Settings& settings);

// Returns the lower bound of a bucket's exchange time from the hardware limits; 0 seconds and an
// unknown source if the limits were not measured.
allreduce::Bound exchange_bound(const allreduce::Settings& settings, std::size_t elements);

// Returns "1.25 x the bound (memory)"; if the exchange beat the bound, a note that the limit was
// measured too low; empty if no limit is known.
std::string distance_text(double seconds, const allreduce::Bound& bound);

// Links as stored in a file, with the ranks and hosts of the measurement.
struct MeasuredLinks {
  int ranks = 0, hosts = 0;
  allreduce::LinkSpeeds speeds;
};
// Throws Error with the file and the problem in it.
MeasuredLinks read_links(const std::string& file);
// Returns nothing if the file is missing, is for other ranks or hosts, or lacks hardware limits.
std::optional<allreduce::LinkSpeeds> load_links(const std::string& file,
                                                const allreduce::Topology& topology);
void save_links(const std::string& file, const allreduce::Topology& topology,
                const allreduce::LinkSpeeds& speeds);

// Returns the elements of each bucket that the step exchanges, by bucket number.
std::vector<std::size_t> buckets_of(const StepPlan& plan);
std::size_t largest_bucket(const StepPlan& plan);  // 0: no exchange

// Returns the lines of --comm_print_plan: for each bucket the candidate algorithms with their
// predicted times, beside the hardware bound, or the bound of assumed links if nothing was
// measured; a mark shows the choice. Buckets of one size share a table.
std::vector<std::string> exchange_plan_lines(const std::vector<std::size_t>& buckets,
                                             const allreduce::Settings& settings);

}  // namespace cnn::bench
