#include "bench/session/op_profile.h"

#include <algorithm>
#include <fmt/format.h>
#include <map>

#include "bench/machine/roofline.h"
#include "bench/machine/step_costs.h"
#include "bench/session/memory_profile.h"

namespace cnn::bench {
namespace {

double roofline_of(const Graph& graph, const Node& node, double flops, const Ceilings& ceilings) {
  return std::max(flops / ceilings.flops_per_second,
                  seconds_to_move(operand_bytes(graph, node), ceilings));
}

std::string row_text(const ProfiledOp& op, double all) {
  constexpr double giga = 1e-9;
  const double seconds = std::max(op.seconds, 1e-12);
  const std::string percent =
      op.roofline_seconds > 0 ? fmt::format("{:.1f}", 100 * op.roofline_seconds / seconds) : "-";
  return fmt::format("{:<44} {:>6} {:>10.3f} {:>7.2f} {:>10.1f} {:>9.1f} {:>9}", op.name, op.nodes,
                     1e3 * op.seconds, all > 0 ? 100 * op.seconds / all : 0.0,
                     giga * op.flops / seconds, giga * op.bytes / seconds, percent);
}

Json span_json(const StepPlan& plan, std::size_t step, const Timeline& measured,
               const Timeline* planned) {
  Json span{{"name", to_string(*plan.graph, plan.schedule.steps[step].action)},
            {"start", measured[step].start},
            {"end", measured[step].end}};
  if (planned != nullptr) {
    span["planned_start"] = (*planned)[step].start;
    span["planned_end"] = (*planned)[step].end;
  }
  return span;
}

}  // namespace

Json lanes_json(const StepPlan& plan, const Timeline& measured, const Timeline* planned) {
  Json lanes = Json::array();
  for (std::size_t lane = 0; lane < lane_count; ++lane) {
    Json spans = Json::array();
    for (std::size_t step = 0; step < measured.size(); ++step) {
      if (static_cast<std::size_t>(plan.schedule.steps[step].lane) == lane) {
        spans.push_back(span_json(plan, step, measured, planned));
      }
    }
    if (!spans.empty()) {
      lanes.push_back({{"lane", name_of(static_cast<Lane>(lane))}, {"spans", spans}});
    }
  }
  return lanes;
}

void MeasuredProfile::add(const Timeline& timeline) {
  if (seconds.size() != timeline.size()) {  // first step, or a new plan
    seconds.assign(timeline.size(), 0);
    steps = 0;
  }
  for (std::size_t i = 0; i < timeline.size(); ++i) {
    seconds[i] += timeline[i].end - timeline[i].start;
  }
  last = timeline;
  ++steps;
}

void ProfileRecord::step_finished(const FinishedStep& step) {
  if (step.timeline != nullptr && wants_timeline(step.number)) {
    profile_.add(*step.timeline);
  }
}

void ProfileRecord::end(const RunEnd& /*end*/) {
  Json& rows = result_["steps"];
  for (std::size_t i = 0; i < std::min<std::size_t>(steps, rows.size()); ++i) {
    rows[i]["profiled"] = true;
  }
}

std::vector<ProfiledOp> profiled_nodes(const StepPlan& plan, const MeasuredProfile& profile,
                                       const std::optional<Ceilings>& ceilings) {
  const Graph& graph = *plan.graph;
  std::vector<ProfiledOp> ops(graph.nodes().size());
  for (std::size_t step = 0; step < profile.seconds.size(); ++step) {
    const auto* compute = std::get_if<Compute>(&plan.schedule.steps[step].action);
    if (compute == nullptr) {
      continue;
    }
    const std::size_t index = index_of(compute->node);
    const Node& node = graph.nodes()[index];
    const double flops = needed_flops(graph, node, &plan.specs[index]);
    ProfiledOp& op = ops[index];
    ++op.nodes;
    op.seconds += profile.seconds[step] / static_cast<double>(profile.steps);
    op.flops += flops;
    op.bytes += operand_bytes(graph, node);
    op.roofline_seconds += ceilings ? roofline_of(graph, node, flops, *ceilings) : 0;
  }
  for (std::size_t i = 0; i < ops.size(); ++i) {
    ops[i].op = graph.nodes()[i].op->name();
    ops[i].name = to_string(graph, Compute{NodeId{static_cast<std::uint32_t>(i)}});
  }
  std::erase_if(ops, [](const ProfiledOp& op) { return op.nodes == 0; });
  return ops;
}

std::vector<ProfiledOp> by_kind(const std::vector<ProfiledOp>& nodes) {
  std::map<std::string, ProfiledOp> kinds;
  for (const ProfiledOp& node : nodes) {
    ProfiledOp& sum = kinds[node.op];
    sum.name = sum.op = node.op;
    sum.nodes += node.nodes;
    sum.seconds += node.seconds;
    sum.flops += node.flops;
    sum.bytes += node.bytes;
    sum.roofline_seconds += node.roofline_seconds;
  }
  std::vector<ProfiledOp> ops;
  ops.reserve(kinds.size());
  for (auto& [name, op] : kinds) {
    ops.push_back(std::move(op));
  }
  std::ranges::stable_sort(ops, std::ranges::greater{}, &ProfiledOp::seconds);
  return ops;
}

std::vector<std::string> profile_table(std::vector<ProfiledOp> ops, std::size_t rows) {
  std::ranges::stable_sort(ops, std::ranges::greater{}, &ProfiledOp::seconds);
  double all = 0;
  for (const ProfiledOp& op : ops) {
    all += op.seconds;
  }
  std::vector<std::string> lines{fmt::format("{:<44} {:>6} {:>10} {:>7} {:>10} {:>9} {:>9}",
                                             "operation", "count", "ms", "share", "GFLOP/s", "GB/s",
                                             "% of roof")};
  for (std::size_t i = 0; i < std::min(rows, ops.size()); ++i) {
    lines.push_back(row_text(ops[i], all));
  }
  return lines;
}

Json profile_json(const StepPlan& plan, const MeasuredProfile& profile,
                  const std::optional<Ceilings>& ceilings, const Timeline* planned) {
  Json ops = Json::array();
  for (const ProfiledOp& op : by_kind(profiled_nodes(plan, profile, ceilings))) {
    ops.push_back({{"op", op.name},
                   {"nodes", op.nodes},
                   {"seconds", op.seconds},
                   {"flops", op.flops},
                   {"bytes", op.bytes},
                   {"roofline_seconds", ceilings ? Json(op.roofline_seconds) : Json(nullptr)}});
  }
  return {{"steps", profile.steps},
          {"ops", ops},
          {"lanes", lanes_json(plan, profile.last, planned)},
          {"memory", memory_profile_json(plan, profile.last)}};
}

}  // namespace cnn::bench
