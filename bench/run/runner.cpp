#include "bench/run/runner.h"

#include <algorithm>
#include <chrono>
#include <fmt/format.h>
#include <memory>
#include <optional>

#include "bench/flags/conditions.h"
#include "bench/machine/machine_json.h"
#include "bench/plan/graph_dot.h"
#include "bench/plan/job.h"
#include "bench/plan/lms_plan.h"
#include "bench/plan/search.h"
#include "bench/ranks/exchange.h"
#include "bench/ranks/exchange_flags.h"
#include "bench/ranks/peers.h"
#include "bench/ranks/rank_consistency.h"
#include "bench/ranks/rank_context.h"
#include "bench/ranks/rank_lanes.h"
#include "bench/ranks/shared_link.h"
#include "bench/report/benchmark_log.h"
#include "bench/report/reporter.h"
#include "bench/report/units.h"
#include "bench/run/evaluator.h"
#include "bench/run/lms_trace.h"
#include "bench/run/observers.h"
#include "bench/run/profile_report.h"
#include "bench/run/roofline_report.h"
#include "bench/run/simulate.h"
#include "bench/run/slice_lock.h"
#include "bench/run/training_loop.h"
#include "bench/session/input.h"
#include "bench/session/session.h"
#include "bench/session/team.h"
#include "bench/version/build_info.h"
#include "data/folder_lock.h"
#include "layers/passes/concat_in_place.h"
#include "lms/policy.h"
#include "runtime/seconds_since.h"

namespace cnn::bench {
namespace {

using Clock = std::chrono::steady_clock;

// Returns a device name as upstream prints it. rank: among all ranks of all processes.
std::string device_text(const Config& config, int processes, int rank) {
  const std::string_view device = word_of(config.device);
  const int process = rank / config.num_gpus, number = rank % config.num_gpus;
  if (processes == 1 && config.variable_update != VariableUpdate::distributed_all_reduce) {
    return fmt::format("/{}:{}", device, rank);
  }
  switch (config.variable_update) {
    case VariableUpdate::horovod:
    case VariableUpdate::ddl:
      return fmt::format("{}/{}:{}", word_of(config.variable_update), device, rank);
    case VariableUpdate::distributed_all_reduce:
      return fmt::format("job:worker/replica:0/task{}/{}:{}", process, device, number);
    default:
      return fmt::format("/job:worker/replica:0/task:{}/{}:{}", process, device, number);
  }
}

Header header_for(const Job& job, int processes) {
  Header header = header_of(*job.config);
  const std::string_view full = build_version();
  header.version = std::string(full.substr(0, full.rfind('.')));  // major.minor, like upstream's
  header.model = job.model->printed_name;
  header.synthetic = job.input.synthetic;
  header.mode = job.mode;
  header.global_batch = job.batch.global;
  header.per_device_batch = job.batch.per_device;
  header.length = job.length;
  header.min_time = job.min_time;
  header.devices.clear();
  const bool predicts_ranks = !job.config->comm.simulate_ranks.empty();  // the header is of one
  for (int rank = 0; rank < (predicts_ranks ? 1 : job.ranks); ++rank) {
    header.devices.push_back(device_text(*job.config, processes, rank));
  }
  return header;
}

Json model_json(const Job& job, const NetworkFacts& facts) {
  return {{"name", job.model->name},
          {"data_set", job.model->data_set},
          {"image_size", job.image_size},
          {"classes", job.model->classes},
          {"trainable_parameters", facts.trainable_parameters},
          {"trainable_tensors", facts.trainable_tensors},
          {"forward_macs", facts.forward_macs}};
}

void note_choices(const Job& job, const Backend& backend, Team& team, Console& console) {
  const Session& session = team.first();
  std::string libraries;
  for (const auto& [name, running] : backend.libraries) {
    libraries += fmt::format(", {} {}", name, running);
  }
  if (job.config->report.print_plan) {
    console.note(to_string(session.plan()));
  }
  console.note(fmt::format("device: {}{}", backend.description, libraries));
  for (const std::string& note : backend.notes) {
    console.note(note);
  }
  for (const std::string& note : team.take_notes()) {
    console.note(note);
  }
  const DeviceMemory& memory = session.memory();
  console.note(fmt::format(
      "plan: {} activations in {}, {} nodes, arena {:.1f} MiB (lower bound {:.1f} MiB), of it "
      "{:.1f} MiB variables{}",
      name_of(job.compute), name_of(session.layout()), session.plan().graph->nodes().size(),
      static_cast<double>(memory.total()) / mib, static_cast<double>(memory.lower_bound()) / mib,
      static_cast<double>(memory.variables) / mib,
      memory.staged == 0
          ? std::string()
          : fmt::format(" and {:.1f} MiB staged input", static_cast<double>(memory.staged) / mib)));
  if (session.fusion() == layers::Fusion::conv) {
    const layers::NormForms& norms = session.norms();
    console.note(
        fmt::format("fusion: {} layers of convolution and batch norm run fused, {} plain, "
                    "{} of these since plain was measured to be faster",
                    norms.fused, norms.plain, norms.faster_plain));
  }
  if (const LmsReport* lms = session.lms()) {
    const LmsFlags& flags = job.config->lms;
    for (const std::string& line : lms_lines(*lms, flags.debug ? flags.debug_level : 0)) {
      console.note(line);
    }
  }
  const layers::InPlace parts = layers::count_in_place(*session.plan().graph);
  if (parts.bytes > 0) {
    console.note(fmt::format(
        "plan: {} of {} concats and splits copy nothing: {:.1f} MiB are made or read in place",
        parts.whole_nodes, parts.nodes, static_cast<double>(parts.bytes) / mib));
  }
}

// Prevents two runs from saving in one folder, where each would load the other's checkpoints.
std::unique_ptr<data::FolderLock> lock_folder(const Job& job) {
  return job.keeps_checkpoints()
             ? std::make_unique<data::FolderLock>(*job.config->checkpoint.train_dir)
             : nullptr;
}

// Restores the checkpoint of --train_dir.
std::optional<Restored> resume(const Observed& run) {
  if (!run.job.keeps_checkpoints()) {
    return std::nullopt;
  }
  const Config& config = *run.job.config;
  std::optional<Restored> restored = run.team.restore(*config.checkpoint.train_dir);
  if (restored) {
    run.result["resumed_from"] = {{"file", restored->path}, {"global_step", restored->global_step}};
    run.console.note(
        fmt::format("resumed from {} at global step {}", restored->path, restored->global_step));
  }
  for (const std::string& notice : run.team.first().notices()) {
    run.console.note(notice);
  }
  return restored;
}

void write_description(const RunRequest& request, const Header& header,
                       const MachineInfo& machine) {
  if (request.config.report.log_dir) {
    write_run_log(*request.config.report.log_dir, {.header = header,
                                                   .machine = machine,
                                                   .test_id = request.config.report.test_id,
                                                   .commit = request.identity.commit,
                                                   .date = request.identity.started});
  }
}

void print_phases(const Job& job, Console& console) {
  if (job.mode != Mode::evaluation) {
    console.print(training_model_line);
  }
  if (job.evaluates()) {
    console.print(evaluation_model_line);
  }
}

// Prints the algorithms of the exchange.
void note_exchange(const Job& job, const Team& team, Console& console) {
  const Exchange* const exchange = team.exchange();
  if (exchange == nullptr) {
    return;
  }
  if (!exchange->by_device.empty()) {
    console.note(exchange->by_device);
    return;
  }
  for (const std::string& note : exchange->notes) {
    console.note(note);
  }
  if (job.config->comm.backend == CommBackend::mpi) {
    console.note("comm: MPI sums: flags that choose an algorithm, an order or a wire do not act");
    return;
  }
  if (!job.config->comm.print_plan) {
    console.note("comm: " + links_text(exchange->settings));
    if (const std::string limits = limits_text(exchange->settings); !limits.empty()) {
      console.note("comm: limits: " + limits);
    }
    return;
  }
  for (const std::string& line :
       exchange_plan_lines(buckets_of(team.first().plan()), exchange->settings)) {
    console.note(line);
  }
}

Json memory_json(const Session& session) {
  return {{"arena_peak_bytes", session.measured_peak_bytes()},
          {"process_peak_bytes", or_null(process_peak_bytes())}};
}

// Returns the other processes of the run, if any; all of them start the same way.
std::optional<Peers> join_peers(const RunRequest& request) {
  if (request.world == nullptr || request.world->ranks() == 1) {
    check_update_mode(request.config, 1, request.world != nullptr);
    return std::nullopt;
  }
  std::optional<Peers> peers(std::in_place, *request.world, request.config, request.interruption);
  peers->compare(description(request.identity));
  return peers;
}

// Returns the answer of the first process, which owns the shared files.
bool first_says(std::optional<Peers>& peers, bool mine) {
  return peers ? peers->from_first(mine) : mine;
}

Backend placed_backend(const RunRequest& request, const std::optional<Peers>& peers) {
  Config placed = with_shared_link(request.config, peers ? &*peers : nullptr);
  placed.gpu.ordinal = peers ? peers->local_rank() * placed.num_gpus : 0;
  return make_backend(placed, request.backends);
}

// Returns the rank context of this process. --simulate_ranks makes it one of two ranks: the steps
// of more ranks have the same nodes.
RankContext context_for(const Config& config, const Backend& backend, std::optional<Peers>& peers) {
  if (peers) {
    return peers->connect(backend);
  }
  RankContext context = only_rank(backend);
  context.ranks = config.comm.simulate_ranks.empty() ? 1 : 2;
  return context;
}

// Building and warming up happen in a turn too; null unless turns are requested.
std::unique_ptr<SliceLock> first_turn(const Config& config, const Interruption& interruption) {
  std::unique_ptr<SliceLock> turns;
  if (config.report.take_turns && !config.gpu.simulate) {
    turns = std::make_unique<SliceLock>(*config.report.take_turns, SliceLock::default_slice,
                                        [&interruption] { return interruption.requested(); });
    turns->begin();
  }
  return turns;
}

// Runs everything from allocating the arena to the totals.
void run_steps(const RunRequest& request, const Observed& run) {
  const Job& job = run.job;
  if (job.mode == Mode::evaluation) {
    Evaluator(job, run.team, run.console, run.result, run.interruption).run();
    return;
  }
  const std::optional<Restored> restored = run.team.follow_first(resume(run));
  const std::int64_t global_step = restored ? restored->global_step : 0;
  run.team.start(global_step);
  run.result["start"]["process_to_first_step"] = seconds_since(request.process_start);
  Observers observers = make_observers(run, restored);
  TrainingLoop loop(job, run.team, observers, run.interruption, global_step);
  loop.run();
  if (job.ranks > 1) {
    Json& ranks = run.result["ranks"] = run.team.ranks_json(loop.own_images_per_sec());
    if (const std::string line = exchange_line(ranks, loop.timed_steps()); !line.empty()) {
      run.console.note(line);
    }
  }
}

// Determines and prints the gradient exchange, which must be equal on all ranks.
void settle_exchange(const Job& job, const Backend& backend, const Session& session, Peers* peers,
                     Console& console) {
  if (job.ranks > 1 && !job.config->gpu.simulate) {  // a simulation prints how ranks scale
    console.note(exchange_text(*job.config, peers));
  }
  if (peers != nullptr) {
    peers->compare(exchange_plan(session.plan(), backend.has_own_memory()));
  }
}

void write_graph(const Config& config, const Session& session, Console& console) {
  if (const std::optional<std::string>& path = config.report.graph_file) {
    make_folder_of(*path);
    console.print(fmt::format("Writing graph as DOT to {}", *path));
    OutputFile("--graph_file", *path).write(graph_dot(*session.plan().graph));
  }
}

// Measures the device after the last step, when the results are safe.
void report_speed(const Observed& run, const ProfileReport& profile, ResultFile& file) {
  file.publish(run.result);
  const Session& session = run.team.first();
  std::optional<Ceilings> ceilings;
  if (run.job.ranks == 1) {  // else a rank has only part of the measured device
    ceilings = add_roofline(run.job, run.context.backend, session.plan(), run.console, run.result);
  }
  profile.finish(run.team, ceilings, run.console, run.result);
}

// Returns whether the user has stopped the run, and prints it.
bool was_interrupted(const Interruption& interruption, Console& console) {
  if (interruption.requested()) {
    console.note(fmt::format("interrupted: {}", interruption.reason()));
  }
  return interruption.requested();
}

void add_job(const Job& job, const Session& session, Json& result) {
  result["mode"] = mode_name(job.mode);
  result["batch"] = {{"global", job.batch.global}, {"per_device", job.batch.per_device}};
  result["model"] = model_json(job, session.facts());
  result["plan"] = session.plan_json();
}

// Returns the seconds of the phases before the first timed step; later phases fill in theirs.
Json start_json(double plan_seconds) {
  return {{"process_to_first_step", 0.0}, {"build", 0.0}, {"plan", plan_seconds}, {"warm_up", 0.0}};
}

// Runs jobs without training steps: a search for sizes, or the input alone. Returns false for other
// runs.
bool ran_without_steps(const RunRequest& request, const Job& job, const RankContext& context,
                       Console& console, Json& result) {
  if (request.config.search.any()) {
    report_search(job, context, console, result);
    return true;
  }
  for (const std::string& notice : job.notices) {
    console.note(notice);
  }
  if (request.config.data.input_only) {
    console.print(header_lines(header_for(job, context.ranks)));
    report_input(job, context, request.interruption, console, result);
    was_interrupted(request.interruption, console);
    return true;
  }
  return false;
}

// Returns whether the run ends before its first step: a plan was all that was asked for, or a
// signal has come to one of the processes.
bool ends_with_plan(const RunRequest& request, Team& team, Console& console) {
  team.agree();
  return was_interrupted(request.interruption, console) || plans_only(request.config);
}

// Settles the exchange, and prints and writes the choices of the plan.
void report_plan(const Job& job, const Backend& backend, Team& team, Peers* peers,
                 Console& console) {
  const Config& config = *job.config;
  note_choices(job, backend, team, console);
  settle_exchange(job, backend, team.first(), peers, console);
  note_exchange(job, team, console);
  write_graph(config, team.first(), console);
  if (plans_only(config) && config.lms.trace && team.first().lms() != nullptr) {
    write_planned(*config.lms.trace, team.first());
  }
}

void run_all(const RunRequest& request, Console& console, Json& result, ResultFile& file) {
  const Config& config = request.config;
  std::optional<Peers> peers = join_peers(request);
  const Backend backend = placed_backend(request, peers);
  const RankContext context = context_for(config, backend, peers);
  const MachineInfo machine = read_machine_info();
  result["machine"] = machine_json(machine, backend);
  const Job job = make_job(config, context);
  if (ran_without_steps(request, job, context, console, result)) {
    return;
  }
  const std::unique_ptr<data::FolderLock> lock = lock_folder(job);
  const bool traces = first_says(peers, !config.report.trace_file.empty());
  const bool profiles = first_says(peers, ProfileReport::is_wanted(config));
  ProfileReport profile(config, job.ranks > 1 && profiles);
  const std::unique_ptr<SliceLock> turns = first_turn(config, request.interruption);
  if (was_interrupted(request.interruption, console)) {  // during the wait
    return;
  }
  const Header header = header_for(job, context.ranks);
  console.print(header_lines(header));
  write_description(request, header, machine);
  print_phases(job, console);
  if (!backend.tuning.notice.empty()) {
    console.note(backend.tuning.notice);
  }
  const Clock::time_point plan_start = Clock::now();
  Team team(job, context, peers ? &*peers : nullptr);
  Json& start = result["start"] = start_json(seconds_since(plan_start));
  team.first().set_planning_seconds(seconds_since(request.process_start));
  add_job(job, team.first(), result);
  report_plan(job, backend, team, peers ? &*peers : nullptr, console);
  if (config.gpu.simulate) {
    report_simulation(job, context, team.first(), console, result);
    return;
  }
  if (ends_with_plan(request, team, console)) {
    return;
  }
  console.print(initializing_line);
  const Clock::time_point build_start = Clock::now();
  team.allocate();
  start["build"] = seconds_since(build_start);
  const Observed run{.job = job,
                     .context = context,
                     .team = team,
                     .console = console,
                     .result = result,
                     .interruption = request.interruption,
                     .turns = turns.get(),
                     .profile = profile.measured(),
                     .traces = traces,
                     .has_plan_file = first_says(peers, config.lms.plan_file.has_value())};
  run_steps(request, run);
  result["memory"] = memory_json(team.first());
  if (!request.interruption.requested() && job.mode != Mode::evaluation) {
    report_speed(run, profile, file);
  }
}

}  // namespace

void run_benchmark(const RunRequest& request, Console& console, Json& result, ResultFile& file) {
  try {
    run_all(request, console, result, file);
  } catch (const lms::PlanningStopped&) {
    was_interrupted(request.interruption, console);
  }
}

}  // namespace cnn::bench
