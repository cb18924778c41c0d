#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "bench/flags/json.h"
#include "bench/machine/backend.h"
#include "bench/report/observer.h"
#include "runtime/program.h"
#include "runtime/timeline.h"

namespace cnn::bench {

// The measured time of each plan step.
struct MeasuredProfile {
  std::int64_t steps = 0;       // profiled
  std::vector<double> seconds;  // by StepId, summed over all profiled steps
  Timeline last;                // of the latest profiled step

  void add(const Timeline& timeline);
};

// Profiles the first ten timed steps, like upstream's --tfprof_file; their rows in the result say
// "profiled", since they are slightly slower. List it after the observer that creates the rows.
class ProfileRecord final : public Observer {
 public:
  // References must outlive it.
  ProfileRecord(MeasuredProfile& profile, Json& result) : profile_(profile), result_(result) {}

  bool wants_timeline(std::int64_t step) const override { return step >= 1 && step <= steps; }
  void step_finished(const FinishedStep& step) override;
  void end(const RunEnd& end) override;
  void failed(const RunEnd& end, std::string_view /*what*/) override { this->end(end); }

 private:
  static constexpr std::int64_t steps = 10;

  MeasuredProfile& profile_;
  Json& result_;
};

// One row of the table: a kind of operation, or a single node of the graph.
struct ProfiledOp {
  std::string name;
  std::string op;                            // the kind
  std::size_t nodes = 0;                     // executions per step
  double seconds = 0, flops = 0, bytes = 0;  // per step
  double roofline_seconds = 0;               // lower bound; 0 if no ceilings are known
};

// Returns a row for each node that computed, in the order of the graph.
std::vector<ProfiledOp> profiled_nodes(const StepPlan& plan, const MeasuredProfile& profile,
                                       const std::optional<Ceilings>& ceilings);

// Merges rows of one kind; the largest seconds first.
std::vector<ProfiledOp> by_kind(const std::vector<ProfiledOp>& nodes);

// Returns lines with name, count, milliseconds, share of all, GFLOP/s, GB/s, per cent of the row's
// roofline; the largest seconds first, at most `rows` lines.
std::vector<std::string> profile_table(std::vector<ProfiledOp> ops, std::size_t rows);

// Returns the lanes of a measured and, if given, planned step: see result_format.md.
Json lanes_json(const StepPlan& plan, const Timeline& measured, const Timeline* planned = nullptr);

// Returns section "profile" of the result: "ops" by kind, "lanes" with each plan step as measured
// and, if given, as planned, and "memory" over the step (see result_format.md).
Json profile_json(const StepPlan& plan, const MeasuredProfile& profile,
                  const std::optional<Ceilings>& ceilings, const Timeline* planned);

}  // namespace cnn::bench
