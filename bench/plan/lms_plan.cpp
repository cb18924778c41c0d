#include "bench/plan/lms_plan.h"

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <fmt/format.h>
#include <memory>
#include <unistd.h>
#include <utility>

#include "bench/flags/config.h"
#include "bench/flags/lms_policy.h"
#include "bench/flags/number_text.h"
#include "bench/machine/step_costs.h"
#include "bench/plan/device_memory.h"
#include "bench/plan/lms_budget.h"
#include "bench/plan/log_prefix.h"
#include "bench/ranks/interruption.h"
#include "bench/ranks/rank_context.h"
#include "bench/report/units.h"
#include "lms/python_text.h"
#include "lms/stalls.h"
#include "runtime/error.h"
#include "runtime/seconds_since.h"

namespace cnn::bench {
namespace {

// Returns the share of memory that the simulation of TFLMS 2 may use: the flag, else the original's
// environment variable.
double simulated_share(const LmsFlags& flags) {
  const char* const text = std::getenv("TF_LMS_SIMULATOR_MEM_RATIO");
  if (text == nullptr || flags.mem_ratio != 1) {
    return flags.mem_ratio;
  }
  const std::optional<double> share = read_float(text);
  check(share && *share > 0 && *share <= 1,
        fmt::format("TF_LMS_SIMULATOR_MEM_RATIO={} is no share of memory: it must be above 0 and "
                    "at most 1",
                    text));
  return *share;
}

// Returns the least bytes of a tensor that may leave. The usual threshold is one for the tensors of
// a whole batch, so it is divided by the number of slices.
std::size_t size_threshold(const LmsFlags& flags, const layers::Slicing& slicing) {
  constexpr std::size_t usual = 1024, of_caffe = 1000;  // KB
  if (flags.size_threshold) {
    return static_cast<std::size_t>(*flags.size_threshold) << 10U;
  }
  const std::size_t of_batch = (policy_of(flags) == "caffe" ? of_caffe : usual) << 10U;
  const std::int64_t slices =
      slicing.row_slices_made() * (slicing.is_sliced() ? slicing.slices : 1);
  return std::max<std::size_t>(of_batch / static_cast<std::size_t>(slices), 1);
}

lms::Options options_of(const LmsFlags& flags, const layers::Slicing& slicing) {
  lms::Options options = flags.options;
  options.size_threshold = size_threshold(flags, slicing);
  options.within_pass = slicing.is_sliced() && slicing.norms;
  if (shares_what_variables_leave(flags)) {
    options.tflms2.simulated_share = simulated_share(flags);
  }
  return options;
}

lms::PlannerOptions planner_options(const Config& config, const RankContext& context,
                                    const DeviceMemory& resident, const layers::Slicing& slicing) {
  const std::size_t host = host_budget(config.lms, context);
  return {.policy = policy_of(config.lms),
          .options = options_of(config.lms, slicing),
          .budget = device_budget(config.lms, context),
          .resident_bytes = resident.variables + resident.staged,
          .host_bytes = host - std::min(host, resident.host_variables),
          .disk_bytes = context.backend.disk ? context.backend.disk->free_bytes : 0,
          // Other ranks wait for the first one, which tells them that it has stopped.
          .stopped = context.rank == 0 ? &Interruption::signal_came : nullptr};
}

// Says what goes on from the host to the disk, where there is one.
void add_disk_line(const LmsReport& report, std::vector<std::string>& lines) {
  if (!report.disk_speed) {
    return;
  }
  const DiskSpeed& disk = *report.disk_speed;
  const lms::Summary& did = report.summary;
  if (did.stored_tensors == 0) {
    lines.push_back(
        fmt::format("[LMS][0] {}: not needed, the host holds what is swapped", disk.label));
    return;
  }
  constexpr double giga = 1e9;
  lines.push_back(fmt::format(
      "[LMS][0] {}: {} of the swapped tensors go on to the disk ({:.2f} GiB out, {:.2f} GiB in) by "
      "{} I/O at {:.2f} and {:.2f} GB/s",
      disk.label, did.stored_tensors, static_cast<double>(did.bytes_stored) / gib,
      static_cast<double>(did.bytes_loaded) / gib, disk.is_direct ? "direct" : "ordinary",
      disk.write_bytes_per_second / giga, disk.read_bytes_per_second / giga));
}

Json disk_json(const LmsReport& report) {
  if (!report.disk_speed) {
    return nullptr;
  }
  const DiskSpeed& disk = *report.disk_speed;
  return {{"folder", disk.folder.string()},
          {"direct_io", disk.is_direct},
          {"swapped_tensors", report.summary.stored_tensors},
          {"swapped_out_bytes", report.summary.bytes_stored},
          {"swapped_in_bytes", report.summary.bytes_loaded},
          {"file_bytes", report.disk},
          {"out_bytes_per_second", disk.write_bytes_per_second},
          {"in_bytes_per_second", disk.read_bytes_per_second}};
}

// Says how much of the step computes in slices.
std::string slicing_line(const layers::Slicing& slicing) {
  if (!slicing.is_sliced()) {
    return fmt::format(
        "[LMS][0] --lms_slices={} acts on nothing: no operation treats each image alone",
        slicing.slices);
  }
  return fmt::format("[LMS][0] {} slices along the batch, of {} of {} forward operations{}",
                     slicing.slices, slicing.sliceable, slicing.forward_nodes,
                     slicing.is_worthwhile()
                         ? ""
                         : ": behind them a batch norm or another operation needs the whole batch");
}

// Says how much of the step computes rows of images.
std::string row_slicing_line(const layers::Slicing& slicing) {
  if (!slicing.is_row_sliced()) {
    return fmt::format("[LMS][0] --lms_row_slices={} acts on nothing: {}", slicing.row_slices,
                       slicing.row_sliceable > 0
                           ? "the last map that could come in slices has one row"
                           : "a batch norm or another operation needs whole images");
  }
  return fmt::format(
      "[LMS][0] {} slices along the rows of images, of {} of {} forward operations{}",
      slicing.row_slices_made(), slicing.row_sliceable, slicing.forward_nodes,
      slicing.row_slices > slicing.rows
          ? fmt::format(": the last map in slices has {} rows", slicing.rows)
          : "");
}

// Says how many dense layers compute in slices.
std::string dense_slicing_line(const LmsReport& report) {
  const layers::Slicing& slicing = report.slicing;
  return slicing.is_dense_sliced()
             ? fmt::format("[LMS][0] {} slices of the inputs of {} dense layer{}",
                           slicing.dense_slices, slicing.dense_sliceable,
                           slicing.dense_sliceable == 1 ? "" : "s")
             : fmt::format("[LMS][0] --lms_dense_slices={} acts on nothing: {}",
                           slicing.dense_slices,
                           report.host_variable_bytes > 0
                               ? "no dense layer has weights on the host that slices could halve"
                               : "all variables lie on the device");
}

double mib_of(std::size_t bytes) { return static_cast<double>(bytes) / mib; }

// Adds the notes of the policy up to this level.
void add_notes(const LmsReport& report, int debug_level, std::vector<std::string>& lines) {
  for (const lms::Note& note : report.notes) {
    if (note.level <= debug_level) {
      // Caffe names the GPU there, not a level.
      lines.push_back(report.note_prefix +
                      (report.policy == "caffe"
                           ? fmt::format("[LMS:0] {}", note.text)
                           : fmt::format("[LMS][{}] {}", note.level, note.text)));
    }
  }
}

// Adds how the step differs from the whole one with all variables on the device.
void add_form(const LmsReport& report, std::vector<std::string>& lines) {
  if (report.slicing.slices > 1) {
    lines.push_back(slicing_line(report.slicing));
  }
  if (report.slicing.row_slices > 1) {
    lines.push_back(row_slicing_line(report.slicing));
  }
  if (report.host_variable_bytes > 0) {
    lines.push_back(fmt::format(
        "[LMS][0] {:.0f} MiB of variables lie on the host and are loaded and updated in slices",
        mib_of(report.host_variable_bytes)));
  }
  if (report.slicing.dense_slices > 1) {
    lines.push_back(dense_slicing_line(report));
  }
}

}  // namespace

LmsPlanner::LmsPlanner(const Config& config, const RankContext& context,
                       const DeviceMemory& resident, const layers::Slicing& slicing)
    : planner_(planner_options(config, context, resident, slicing)),
      budget_source_(source_of_budget(config.lms, context)),
      idle_flags_(idle_budget_flags(config.lms, context)),
      disk_(context.backend.disk),
      slicing_(slicing),
      host_variable_bytes_(resident.host_variables),
      staged_bytes_(resident.staged) {}

void LmsPlanner::use(SavedPlan plan, std::string path) {
  max_fused_grad_add_bytes_ = plan.max_fused_grad_add_bytes;
  loaded_ = std::move(plan);
  file_ = std::move(path);
}

void LmsPlanner::use_max_fused_grad_add(std::size_t max_fused_grad_add_bytes,
                                        const LmsReport& whole) {
  max_fused_grad_add_bytes_ = max_fused_grad_add_bytes;
  whole_ = whole;
}

SavedPlan LmsPlanner::latest() const {
  return {.policy = report_.policy,
          .max_fused_grad_add_bytes = max_fused_grad_add_bytes_,
          .slices = slicing_.slices,
          .row_slices = slicing_.row_slices,
          .dense_slices = slicing_.dense_slices,
          .host_variables = host_variable_bytes_ > 0,
          .budget = report_.budget,
          .peak = report_.peak,
          .host = report_.host,
          .enough = planner_.enough(),
          .schedule = planner_.schedule()};
}

StepPlan LmsPlanner::make(const StepPlan& unlimited, const Costs& costs, bool measured) {
  if (!loaded_) {
    const bool has_other = whole_ && whole_->fits && !measured;  // which the caller compares
    return has_other ? planner_.plan(unlimited, costs, whole_->predicted_seconds)
                     : planner_.plan(unlimited, costs);
  }
  try {
    check(!loaded_->host_variables || host_variable_bytes_ > 0,
          "\"host_variables\" is true, but no variable of this step can lie on the host; make one "
          "for this run with --lms_plan_out");
    return planner_.plan_by(loaded_->schedule, loaded_->enough, unlimited, costs);
  } catch (const Error& error) {
    throw file_.empty()
        ? error
        : Error(fmt::format("--lms_plan_file={}: {}", file_, error.what()), error.where());
  }
}

StepPlan LmsPlanner::plan(const StepPlan& unlimited, const Costs& costs, bool measured) {
  const auto start = std::chrono::steady_clock::now();
  StepPlan result = make(unlimited, costs, measured);
  report_ = {planner_.report()};
  report_.policy = loaded_ ? loaded_->policy : planner_.options().policy;
  report_.file = file_;
  report_.note_prefix = log_prefix(report_.policy, std::chrono::system_clock::now(), gettid());
  report_.idle_flags = idle_flags_;
  report_.measured = measured;
  report_.unlimited_seconds = report_.compute_seconds;
  report_.max_fused_grad_add_bytes = max_fused_grad_add_bytes_;
  report_.slicing = slicing_;
  report_.host_variable_bytes = host_variable_bytes_;
  report_.disk_speed = disk_;
  if (disk_) {
    report_.disk_speed->write_bytes_per_second = costs.store_bytes_per_second;
    report_.disk_speed->read_bytes_per_second = costs.load_bytes_per_second;
  }
  for (lms::Note& note : report_.notes) {
    if (note.text == lms::took_text) {
      note.text = fmt::format(lms::took_text, lms::python_text(1e3 * planner_.policy_seconds()));
    }
  }
  if (whole_) {
    compare();
  }
  report_.planning_seconds = seconds_since(start);
  return result;
}

std::optional<StepPlan> LmsPlanner::replan(const StepPlan& unlimited, const Costs& costs) {
  try {
    return plan(unlimited, costs, true);
  } catch (const lms::PlanningStopped&) {
    return std::nullopt;
  }
}

void LmsPlanner::include_form(const LmsReport& form) {
  if (!whole_) {
    whole_ = report_;
  }
  for (LmsReport* report : {&report_, &*whole_}) {
    report->lower_bound_seconds = std::min(report->lower_bound_seconds, form.lower_bound_seconds);
    report->floor = std::min(report->floor, form.floor);
  }
}

// Figures of the step that hold in whichever form it runs.
void LmsPlanner::compare() {
  if (!report_.measured) {
    whole_share_ = whole_->unlimited_seconds / report_.compute_seconds;
    report_.lower_bound_seconds =
        std::min(report_.lower_bound_seconds, whole_->lower_bound_seconds);
  }
  report_.unlimited_seconds = whole_share_ * report_.compute_seconds;
  report_.need = whole_->need;
  report_.necessary = whole_->necessary;
  report_.floor = std::min(report_.floor > 0 ? report_.floor : whole_->floor, whole_->floor);
}

std::size_t LmsPlanner::min_bytes(const StepPlan& unlimited, const Costs& costs) const {
  return planner_.min_bytes(unlimited, costs);
}

void LmsPlanner::keep(LmsReport report, const StepPlan& plan, const Costs& costs) {
  report.compute_seconds = report_.compute_seconds;
  report.unlimited_seconds = report_.unlimited_seconds;
  report.recompute_seconds = lms::recompute_seconds(*plan.graph, plan.schedule, costs);
  report.lower_bound_seconds = report_.lower_bound_seconds;
  report.measured = report_.measured;
  report.planning_seconds = report_.planning_seconds;
  lms::predict(report, plan, costs);
  report_ = std::move(report);
}

Costs expected_costs(const StepPlan& plan, const Backend& backend) {
  // Rates of one server core with AVX2: the plan needs relative costs, and is replanned after steps
  // were measured.
  constexpr double flops_of_core = 60e9, bytes_of_core = 12e9;
  constexpr double bytes_of_link = 12e9;  // PCIe 3
  const auto cores = static_cast<double>(std::max<std::int64_t>(backend.processors.threads, 1));
  const Ceilings usual{.flops_per_second = cores * flops_of_core,
                       .bytes_per_second = cores * bytes_of_core};
  Costs costs{.out_bytes_per_second = bytes_of_link, .in_bytes_per_second = bytes_of_link};
  if (backend.link) {
    costs.out_bytes_per_second = backend.link->out;
    costs.in_bytes_per_second = backend.link->in;
    costs.both_bytes_per_second = backend.link->both;
  }
  if (backend.disk) {
    costs.store_bytes_per_second = backend.disk->write_bytes_per_second;
    costs.load_bytes_per_second = backend.disk->read_bytes_per_second;
  }
  const Ceilings ceilings =
      backend.described ? backend.described->reached() : backend.expected.value_or(usual);
  for (const NodeCost& cost : node_costs(*plan.graph, ceilings, plan.specs)) {
    // A node of a copy lane moves a variable over the link.
    const Lane lane = plan.graph->nodes()[costs.seconds.size()].op->lane();
    const double rate = lane == Lane::copy_in    ? costs.in_bytes_per_second
                        : lane == Lane::copy_out ? costs.out_bytes_per_second
                                                 : 0;
    costs.seconds.push_back(rate > 0 ? cost.bytes / rate : cost.seconds);
  }
  return costs;
}

std::vector<std::string> lms_lines(const LmsReport& report, int debug_level) {
  std::vector<std::string> lines;
  add_notes(report, debug_level, lines);
  if (!report.idle_flags.empty()) {
    lines.push_back("[LMS][0] " + report.idle_flags);
  }
  add_form(report, lines);
  if (!report.active()) {
    lines.emplace_back("[LMS][0] LMS is not necessary. Turned LMS off.");
    lines.push_back(fmt::format("[LMS][0] budget {:.0f} MiB, need {:.0f} MiB",
                                mib_of(report.budget), mib_of(report.need)));
    return lines;
  }
  if (!report.file.empty()) {
    lines.push_back(fmt::format("[LMS][0] the plan is that of {}, as the policy {} made it",
                                report.file, report.policy));
  }
  const lms::Summary& did = report.summary;
  lines.push_back(fmt::format(
      "[LMS][0] budget {:.0f} MiB, need {:.0f} MiB (x{:.2f}), floor {:.0f} MiB, feasible {}",
      mib_of(report.budget), mib_of(report.need),
      static_cast<double>(report.need) / static_cast<double>(report.budget), mib_of(report.floor),
      report.fits ? "yes" : "no"));
  lines.push_back(fmt::format(
      "[LMS][0] plan: keep {} swap {} ({:.2f} GiB out, {:.2f} GiB in) recompute {} (+{:.1f} ms) "
      "compress 0, planned in {:.0f} ms",
      report.kept, did.swapped_tensors, static_cast<double>(did.bytes_out) / gib,
      static_cast<double>(did.bytes_in) / gib, did.recomputed, 1e3 * report.recompute_seconds,
      1e3 * report.planning_seconds));
  lines.push_back(fmt::format(
      "[LMS][0] predicted peak {:.0f} MiB, arena {:.0f} MiB (live maximum {:.0f}, fragmentation "
      "{:.1f} %), host {:.2f} GiB pinned",
      mib_of(report.peak), mib_of(report.peak), mib_of(report.live_peak),
      100 * (static_cast<double>(report.peak) / static_cast<double>(report.live_peak) - 1),
      static_cast<double>(report.host) / gib));
  add_disk_line(report, lines);
  const double computing = report.compute_seconds + report.recompute_seconds;
  lines.push_back(fmt::format(
      "[LMS][0] predicted step {:.1f} ms (compute {:.1f}, stalls {:.1f}), lower bound {:.1f} ms, "
      "gap {:.1f} %",
      1e3 * report.predicted_seconds, 1e3 * computing,
      1e3 * std::max(0.0, report.predicted_seconds - computing), 1e3 * report.lower_bound_seconds,
      100 * (report.predicted_seconds / report.lower_bound_seconds - 1)));
  if (!report.measured) {
    lines.emplace_back(
        "[LMS][0] these times are of usual or described speeds of such a device and its link, not "
        "measured here");
  }
  return lines;
}

Json stalls_json(const lms::Stalls& stalls) {
  return {{"swap_in", stalls.swap_in}, {"memory", stalls.memory}, {"other", stalls.other}};
}

Json lms_json(const LmsReport& report) {
  const Json join = report.max_fused_grad_add_bytes == layers::any_size
                        ? Json()
                        : Json(report.max_fused_grad_add_bytes);
  return {{"policy", report.policy},
          {"necessary", report.necessary},
          {"largest_join_bytes", join},
          {"slices", report.slicing.slices},
          {"row_slices", report.slicing.row_slices_made()},
          {"dense_slices", report.slicing.is_dense_sliced() ? report.slicing.dense_slices : 1},
          {"host_variable_bytes", report.host_variable_bytes},
          {"sliced_operations", report.slicing.is_sliced() ? report.slicing.sliceable : 0},
          {"budget_bytes", report.budget},
          {"need_bytes", report.need},
          {"floor_bytes", report.floor},
          {"swapped_tensors", report.summary.swapped_tensors},
          {"swapped_out_bytes", report.summary.bytes_out},
          {"swapped_in_bytes", report.summary.bytes_in},
          {"disk", disk_json(report)},
          {"recomputed_nodes", report.summary.recomputed},
          {"predicted_peak_bytes", report.peak},
          {"predicted_step_seconds", report.predicted_seconds},
          {"unlimited_step_seconds", report.unlimited_seconds},
          {"lower_bound_seconds", report.lower_bound_seconds},
          {"predicted_stall_seconds", stalls_json(report.predicted_stalls)},
          {"planning_seconds", report.planning_seconds},
          {"plan_file", report.file.empty() ? Json(nullptr) : Json(report.file)}};
}

}  // namespace cnn::bench
