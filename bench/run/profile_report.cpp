#include "bench/run/profile_report.h"

#include <algorithm>
#include <fmt/format.h>
#include <limits>

#include "bench/machine/roofline.h"
#include "bench/machine/step_costs.h"
#include "bench/session/session.h"
#include "bench/session/team.h"
#include "runtime/timeline.h"

namespace cnn::bench {
namespace {

constexpr std::size_t shown_kinds = 20;  // as upstream prints

// Returns a timeline for a plan without a prediction: each node at its roofline, copies at no cost.
Timeline at_best(const StepPlan& plan, const Ceilings& ceilings) {
  Costs costs;
  for (std::size_t i = 0; i < plan.specs.size(); ++i) {
    const Node& node = plan.graph->nodes()[i];
    costs.seconds.push_back(
        std::max(needed_flops(*plan.graph, node, &plan.specs[i]) / ceilings.flops_per_second,
                 seconds_to_move(operand_bytes(*plan.graph, node), ceilings)));
  }
  return simulate(plan, costs);
}

std::optional<Timeline> planned_timeline(const Session& session, std::size_t steps,
                                         const std::optional<Ceilings>& ceilings) {
  const LmsReport* lms = session.lms();
  if (lms != nullptr && lms->active() && lms->timeline.size() == steps) {
    return lms->timeline;
  }
  return ceilings ? std::optional(at_best(session.plan(), *ceilings)) : std::nullopt;
}

std::string text_of(const std::vector<std::string>& lines) {
  std::string text;
  for (const std::string& line : lines) {
    text += line + "\n";
  }
  return text;
}

}  // namespace

bool ProfileReport::is_wanted(const Config& config) {
  return config.report.tfprof_file || config.report.html_report;
}

ProfileReport::ProfileReport(const Config& config, bool of_ranks)
    : wanted_(of_ranks || is_wanted(config)),
      of_ranks_(of_ranks),
      path_(config.report.tfprof_file) {
  if (path_) {
    make_folder_of(*path_);
    table_.emplace("--tfprof_file", *path_);
  }
}

void ProfileReport::finish(Team& team, const std::optional<Ceilings>& ceilings, Console& console,
                           Json& result) const {
  const Session& session = team.first();
  const StepPlan& plan = session.plan();
  if (measured_.steps == 0 || measured_.last.size() != plan.schedule.steps.size()) {
    return;
  }
  const std::optional<Timeline> planned =
      planned_timeline(session, measured_.last.size(), ceilings);
  result["profile"] = profile_json(plan, measured_, ceilings, planned ? &*planned : nullptr);
  if (of_ranks_) {
    result["profile"]["ranks"] = team.lanes_of_ranks();
  }
  if (!table_) {
    return;
  }
  const std::vector<ProfiledOp> nodes = profiled_nodes(plan, measured_, ceilings);
  constexpr std::size_t all = std::numeric_limits<std::size_t>::max();
  console.print(fmt::format("Dumping profile to {}", *path_));
  table_->write(fmt::format("mean of {} steps\n\n{}\n{}", measured_.steps,
                            text_of(profile_table(by_kind(nodes), all)),
                            text_of(profile_table(nodes, all))));
  for (const std::string& line : profile_table(by_kind(nodes), shown_kinds)) {
    console.note(line);
  }
}

}  // namespace cnn::bench
