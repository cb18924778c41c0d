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

// The links by which all ranks choose: those of --comm_calibration_file where rank 0 finds some for
// as many ranks and hosts, else measured, and written there. Flags win over both. All ranks call it
// together. Throws Error for a file that cannot be read or written.
void calibrate(const CommFlags& flags, allreduce::Settings& settings,
               allreduce::Transport& transport, const allreduce::simd::Loops& loops);

// "latency 0.50 us, ...": one line on the links that a choice goes by, and how each was found.
std::string links_text(const allreduce::Settings& settings);
// "memory 21.3 GB/s (measured), ...": one line on the limits of the hardware that bounds follow
// from; empty where none is known.
std::string limits_text(const allreduce::Settings& settings);
// The same for a result file.
Json limits_json(const allreduce::Settings& settings);

// The time that the exchange of a bucket cannot fall below: by the limits of the hardware, or 0
// seconds of an unknown source where they were not measured.
allreduce::Bound exchange_bound(const allreduce::Settings& settings, std::size_t elements);

// "1.25 x the bound (memory)"; where the exchange was faster than the bound, that the limit was
// measured too low; empty where no limit is known.
std::string distance_text(double seconds, const allreduce::Bound& bound);

// Links as a file keeps them, with the ranks and hosts among which they were measured.
struct MeasuredLinks {
  int ranks = 0, hosts = 0;
  allreduce::LinkSpeeds speeds;
};
// Throws Error that names the file and what is wrong in it.
MeasuredLinks read_links(const std::string& file);
// Nothing if the file is not there, is of other ranks or hosts, or has no limits of the hardware.
std::optional<allreduce::LinkSpeeds> load_links(const std::string& file,
                                                const allreduce::Topology& topology);
void save_links(const std::string& file, const allreduce::Topology& topology,
                const allreduce::LinkSpeeds& speeds);

// Elements of each bucket that the step exchanges, by its number.
std::vector<std::size_t> buckets_of(const StepPlan& plan);
std::size_t largest_bucket(const StepPlan& plan);  // 0: it exchanges nothing

// --comm_print_plan: for each bucket the algorithms that were weighed, with the time that the model
// gives them, beside the bound of the hardware, or of assumed links where nothing was measured; the
// chosen one has a mark. Buckets of one size share a table.
std::vector<std::string> exchange_plan_lines(const std::vector<std::size_t>& buckets,
                                             const allreduce::Settings& settings);

}  // namespace cnn::bench
