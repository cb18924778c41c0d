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

// Where the time of a step goes, by the steps of its plan.
struct MeasuredProfile {
  std::int64_t steps = 0;       // that were profiled
  std::vector<double> seconds;  // by StepId, of all of them together
  Timeline last;                // of the last of them

  void add(const Timeline& timeline);
};

// Profiles the first ten timed steps, as the original's --tfprof_file does; their rows in the
// result say "profiled", since they are a little slower. List it behind the one that makes the
// rows.
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
  std::string op;                            // its kind
  std::size_t nodes = 0;                     // times that it runs in a step
  double seconds = 0, flops = 0, bytes = 0;  // of a step
  double roofline_seconds = 0;               // at the least; 0 where no ceilings are known
};

// Nodes that computed, in the order of the graph.
std::vector<ProfiledOp> profiled_nodes(const StepPlan& plan, const MeasuredProfile& profile,
                                       const std::optional<Ceilings>& ceilings);

// Rows of one kind together; most seconds first.
std::vector<ProfiledOp> by_kind(const std::vector<ProfiledOp>& nodes);

// name, count, milliseconds, share of all, GFLOP/s, GB/s, per cent of its own roofline: one line
// each, most seconds first, at most `rows` of them.
std::vector<std::string> profile_table(std::vector<ProfiledOp> ops, std::size_t rows);

// Lanes of a step that was measured and, if given, planned: see result_format.md.
Json lanes_json(const StepPlan& plan, const Timeline& measured, const Timeline* planned = nullptr);

// Section "profile" of the result: "ops" by kind, "lanes" with each step of the plan as measured
// and, if given, as planned, and "memory" over the step (see result_format.md).
Json profile_json(const StepPlan& plan, const MeasuredProfile& profile,
                  const std::optional<Ceilings>& ceilings, const Timeline* planned);

}  // namespace cnn::bench
