#include "bench/run/simulate.h"

#include <algorithm>
#include <fmt/format.h>

#include "bench/machine/roofline.h"
#include "bench/plan/job.h"
#include "bench/plan/lms_plan.h"
#include "bench/ranks/exchange.h"
#include "bench/ranks/rank_context.h"
#include "bench/ranks/simulate_ranks.h"
#include "bench/report/trace_file.h"
#include "bench/report/units.h"
#include "bench/session/session.h"

namespace cnn::bench {
namespace {

constexpr double shown_share = 0.02;  // minimum share of all nodes' time for an op's line

// The prediction of --simulate for the named machine.
struct Simulation {
  std::string machine, source;  // of the two ceilings
  std::string calibrated;       // the published speed behind the efficiency; may be empty
  Efficiency efficiency;
  Link link;
  std::string fusion;
  double flops_per_second = 0, bytes_per_second = 0;
  double step_seconds = 0, images_per_sec = 0;  // predicted
  double roofline_images_per_sec = 0;           // with each operand moved once
  double arithmetic_images_per_sec = 0;
  double flops_per_image = 0, bytes_per_image = 0;
  std::int64_t memory_limit = 0, workspace_bytes = 0, largest_batch = 0;
  std::int64_t library_convolutions = 0, own_convolutions = 0;
  bool with_lms = false;
};

// by_op: the largest seconds first.
Json to_json(const Simulation& simulation, const std::vector<OpCost>& by_op) {
  Json ops = Json::array();
  for (const OpCost& op : by_op) {
    ops.push_back({{"op", op.op},
                   {"nodes", op.nodes},
                   {"seconds", op.cost.seconds},
                   {"bytes", op.cost.bytes},
                   {"flops", op.cost.flops}});
  }
  return {{"machine", simulation.machine},
          {"source", simulation.source},
          {"fusion", simulation.fusion},
          {"flops_per_second", simulation.flops_per_second},
          {"bytes_per_second", simulation.bytes_per_second},
          {"efficiency",
           {{"products", simulation.efficiency.products}, {"bytes", simulation.efficiency.bytes}}},
          {"link_out_bytes_per_second", simulation.link.out},
          {"link_in_bytes_per_second", simulation.link.in},
          {"step_seconds", simulation.step_seconds},
          {"images_per_sec", simulation.images_per_sec},
          {"roofline_images_per_sec", simulation.roofline_images_per_sec},
          {"arithmetic_images_per_sec", simulation.arithmetic_images_per_sec},
          {"flops_per_image", simulation.flops_per_image},
          {"bytes_per_image", simulation.bytes_per_image},
          {"memory_limit", simulation.memory_limit},
          {"workspace_bytes", simulation.workspace_bytes},
          {"largest_batch", simulation.largest_batch},
          {"library_convolutions", simulation.library_convolutions},
          {"own_convolutions", simulation.own_convolutions},
          {"by_op", ops}};
}

void note_ops(const Prediction& prediction, Console& console) {
  double all = 0;
  for (const OpCost& op : prediction.by_op) {
    all += op.cost.seconds;
  }
  for (const OpCost& op : prediction.by_op) {
    const double share = op.cost.seconds / all;
    if (share >= shown_share) {
      console.note(fmt::format(
          "simulate: {:5.1f} %  {:8.3f} ms  {:8.2f} GB  {:8.1f} GFLOP  {} x {}", 100 * share,
          1e3 * op.cost.seconds, 1e-9 * op.cost.bytes, 1e-9 * op.cost.flops, op.nodes, op.op));
    }
  }
}

void note_prediction(const Simulation& result, std::string_view batch_flag,
                     const RankContext& context, Console& console) {
  const Efficiency& reached = result.efficiency;
  const std::string speed =
      result.calibrated.empty()
          ? "a real step takes longer"
          : fmt::format("kernels reach {:.1f} % and {:.1f} % of these, which gives {}",
                        100 * reached.products, 100 * reached.bytes, result.calibrated);
  console.note(fmt::format(
      "simulate: predicted step {:.3f} ms = {:.1f} images/sec at --fusion={} on {}: from ceilings "
      "of {:.1f} TFLOP/s and {:.2f} TB/s, not a measurement; {}",
      1e3 * result.step_seconds, result.images_per_sec, result.fusion, result.machine,
      1e-12 * result.flops_per_second, 1e-12 * result.bytes_per_second, speed));
  console.note(
      fmt::format("simulate: limits {:.1f} images/sec with each operand moved once, {:.1f} by "
                  "arithmetic alone; {:.1f} MB and {:.2f} GFLOP for each image",
                  result.roofline_images_per_sec, result.arithmetic_images_per_sec,
                  1e-6 * result.bytes_per_image, 1e-9 * result.flops_per_image));
  console.note(
      fmt::format("simulate: {} convolutions by cuDNN, {} by kernels of this program; "
                  "largest workspace {:.1f} MiB",
                  result.library_convolutions, result.own_convolutions,
                  static_cast<double>(result.workspace_bytes) / mib));
  if (const std::string& assumed = context.backend.described.value().assumed; !assumed.empty()) {
    console.note("simulate: " + assumed);
  }
  console.note(fmt::format("simulate: the largest {} that fits{} is {} ({:.1f} MiB: {})",
                           batch_flag, result.with_lms ? " without --lms" : "",
                           result.largest_batch, static_cast<double>(result.memory_limit) / mib,
                           context.memory.text));
  console.note("simulate: launches, gaps between kernels and the input are not counted");
  console.note(fmt::format("simulate: ceilings of {}: {}", result.machine, result.source));
}

// Prints the exchange for the first number of ranks; with --comm_print_plan all candidates for
// each.
void note_exchange(const Config& config, const StepPlan& plan, Console& console) {
  const CommFlags& flags = config.comm;
  const Exchange first = simulated_exchange(config, flags.simulate_ranks.front(), plan);
  for (const std::string& note : first.notes) {
    console.note(note);
  }
  console.note("simulate: links of hosts: " + links_text(first.settings));
  console.note("simulate: " + assumptions_text(assumptions_of(flags)));
  for (const std::int64_t ranks :
       flags.print_plan ? flags.simulate_ranks : std::vector<std::int64_t>()) {
    console.note(fmt::format("simulate: {} ranks", ranks));
    for (const std::string& line :
         exchange_plan_lines(buckets_of(plan), simulated_exchange(config, ranks, plan).settings)) {
      console.note(line);
    }
  }
}

// Prints the cost of the budget.
void note_lms(const LmsReport& lms, Console& console) {
  if (!lms.necessary) {
    return;
  }
  console.note(fmt::format(
      "simulate: with --lms {:.1f} % of the speed without a limit of memory; no plan exceeds "
      "{:.1f} %, the distance to that bound is {:.1f} %",
      100 * lms.unlimited_seconds / lms.predicted_seconds,
      100 * lms.unlimited_seconds / lms.lower_bound_seconds,
      100 * (lms.predicted_seconds / lms.lower_bound_seconds - 1)));
}

}  // namespace

Prediction predict(const StepPlan& plan, const Ceilings& ceilings, const Costs& costs) {
  const Graph& graph = *plan.graph;
  Prediction result{.timeline = simulate(plan, costs)};
  result.step_seconds = end_of(result.timeline);
  result.roofline_seconds = roofline_seconds(plan, ceilings);
  std::vector<NodeCost> nodes = node_costs(graph, ceilings, plan.specs);
  for (std::size_t n = 0; n < nodes.size(); ++n) {
    nodes[n].seconds = costs.seconds[n];
    result.flops += nodes[n].flops;
    result.bytes += nodes[n].bytes;
  }
  result.arithmetic_seconds = result.flops / ceilings.flops_per_second;
  result.by_op = costs_by_op(graph, nodes);
  return result;
}

Convolutions count_convolutions(const StepPlan& plan) {
  Convolutions count;
  const std::span<const Node> nodes = plan.graph->nodes();
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    const KernelSpec& spec = plan.specs[i];
    const Op& op = *nodes[i].op;
    if (op.flops(spec.in) > 0 && op.name().find("conv") != std::string_view::npos) {
      ++(spec.by == Provider::cudnn ? count.by_library : count.own);
    }
  }
  return count;
}

void report_simulation(const Job& job, const RankContext& context, const Session& session,
                       Console& console, Json& result) {
  const Described& described = context.backend.described.value();
  const Ceilings& ceilings = described.ceilings;
  const StepPlan& plan = session.plan();
  const bool traced = !job.config->report.trace_file.empty();
  const std::optional<TraceFile> trace =
      traced ? std::optional<TraceFile>(job.config->report.trace_file) : std::nullopt;
  const Prediction prediction = predict(plan, ceilings, expected_costs(plan, context.backend));
  const Convolutions convolutions = count_convolutions(plan);
  const BatchSize size = job.mode == Mode::evaluation ? job.eval_batch : job.batch;
  const auto batch = static_cast<double>(size.per_device);
  const Simulation found{.machine = described.machine,
                         .source = described.source,
                         .calibrated = described.calibrated,
                         .efficiency = described.efficiency,
                         .link = context.backend.link.value(),
                         .fusion = std::string(name_of(session.fusion())),
                         .flops_per_second = ceilings.flops_per_second,
                         .bytes_per_second = ceilings.bytes_per_second,
                         .step_seconds = prediction.step_seconds,
                         .images_per_sec = batch / prediction.step_seconds,
                         .roofline_images_per_sec = batch / prediction.roofline_seconds,
                         .arithmetic_images_per_sec = batch / prediction.arithmetic_seconds,
                         .flops_per_image = prediction.flops / batch,
                         .bytes_per_image = prediction.bytes / batch,
                         .memory_limit = static_cast<std::int64_t>(context.memory.device),
                         .workspace_bytes = static_cast<std::int64_t>(session.workspace_bytes()),
                         .largest_batch = session.largest_batch(),
                         .library_convolutions = convolutions.by_library,
                         .own_convolutions = convolutions.own,
                         .with_lms = session.lms() != nullptr};
  note_prediction(found, job.batch_flag(), context, console);
  if (session.lms() != nullptr) {
    note_lms(*session.lms(), console);
  }
  note_ops(prediction, console);
  result["plan"]["predicted_step_seconds"] = prediction.step_seconds;
  result["simulation"] = to_json(found, prediction.by_op);
  if (!job.config->comm.simulate_ranks.empty()) {
    note_exchange(*job.config, plan, console);
    report_ranks(predict_ranks(plan, expected_costs(plan, context.backend), *job.config), batch,
                 console, result["simulation"]["ranks"]);
  }
  if (trace) {
    trace->write(plan, prediction.timeline);
  }
}

}  // namespace cnn::bench
