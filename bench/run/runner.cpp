#include "bench/run/runner.h"

#include <chrono>
#include <fmt/format.h>
#include <optional>

#include "bench/machine/backend.h"
#include "bench/machine/roofline.h"
#include "bench/report/benchmark_log.h"
#include "bench/report/build_info.h"
#include "bench/report/reporter.h"
#include "bench/run/evaluator.h"
#include "bench/run/job.h"
#include "bench/run/session.h"
#include "bench/run/simulate.h"
#include "bench/run/training_loop.h"
#include "layers/passes/concat_in_place.h"
#include "runtime/error.h"

namespace cnn::bench {
namespace {

using Clock = std::chrono::steady_clock;
constexpr double mib = 1024.0 * 1024.0;

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

Header header_for(const Job& job, const Backend& backend) {
  Header header = header_of(*job.config);
  const std::string_view full = build_version();
  header.version = std::string(full.substr(0, full.rfind('.')));  // major.minor, as the original's
  header.model = job.model->printed_name;
  header.synthetic = job.input.synthetic;
  header.mode = job.mode;
  header.global_batch = job.batch;
  header.per_device_batch = job.batch;
  header.length = job.length;
  header.devices = {backend.device_text};
  return header;
}

ResultMachine machine_of(const Backend& backend) {
  return {.info = read_machine_info(),
          .cores_used = backend.threads,
          .instruction_sets = backend.instruction_sets,
          .libraries = backend.libraries,
          .gpu = backend.gpu};
}

ResultModel model_of(const Job& job, const NetworkFacts& facts) {
  return {.name = std::string(job.model->name),
          .data_set = std::string(job.model->data_set),
          .image_size = job.image_size,
          .classes = job.model->classes,
          .trainable_parameters = facts.trainable_parameters,
          .trainable_tensors = facts.trainable_tensors,
          .forward_macs = facts.forward_macs};
}

ResultPlan plan_of(const Backend& backend, const Session& session) {
  return {.layout = std::string(name_of(session.layout())),
          .precision = backend.precision,
          .arena_bytes = static_cast<std::int64_t>(session.arena_bytes()),
          .lower_bound_bytes = static_cast<std::int64_t>(session.lower_bound_bytes()),
          .host_bytes = static_cast<std::int64_t>(session.plan().memory.host_bytes),
          .workspace_bytes = static_cast<std::int64_t>(session.workspace_bytes())};
}

void note_choices(const Job& job, const Backend& backend, const Session& session,
                  Console& console) {
  std::string libraries;
  for (const auto& [name, running] : backend.libraries) {
    libraries += fmt::format(", {} {}", name, running);
  }
  console.note(fmt::format("device: {}{}", backend.description, libraries));
  for (const std::string& note : backend.notes) {
    console.note(note);
  }
  console.note(fmt::format(
      "plan: {} activations in {}, {} nodes, arena {:.1f} MiB (lower bound {:.1f} MiB)",
      name_of(job.compute), name_of(session.layout()), session.plan().graph->nodes().size(),
      static_cast<double>(session.arena_bytes()) / mib,
      static_cast<double>(session.lower_bound_bytes()) / mib));
  const layers::InPlace parts = layers::count_in_place(*session.plan().graph);
  if (parts.bytes > 0) {
    console.note(fmt::format(
        "plan: {} of {} concats and splits copy nothing: {:.1f} MiB are made or read in place",
        parts.whole_nodes, parts.nodes, static_cast<double>(parts.bytes) / mib));
  }
}

// The arena is still there: a device that it fills has no room for operands of a measurement.
std::optional<Ceilings> try_to_measure(const Backend& backend, DataType compute, Console& console) {
  try {
    return measure_ceilings(backend, compute);
  } catch (const Error& error) {
    console.note(fmt::format("the device's ceilings were not measured: {}", error.what()));
    return std::nullopt;
  }
}

// How near the steps came to what the device allows; measured after the last timed step.
void add_roofline(const Job& job, const Backend& backend, const Session& session, Console& console,
                  ResultRecord& record) {
  if (!record.summary) {
    return;
  }
  const std::optional<Ceilings> measured = try_to_measure(backend, job.compute, console);
  if (!measured) {
    return;
  }
  const Ceilings& ceilings = *measured;
  const double limit = roofline_seconds(session.plan(), ceilings);
  const double percent = 100 * limit / record.summary->median_step_seconds;
  record.summary->percent_of_roofline = percent;
  console.note(fmt::format(
      "speed: median step {:.4f} s, {:.1f} % of the roofline ({:.1f} images/sec at {:.0f} GFLOP/s "
      "and {:.1f} GB/s, measured on this device after the last step)",
      record.summary->median_step_seconds, percent, static_cast<double>(job.batch) / limit,
      ceilings.flops_per_second * 1e-9, ceilings.bytes_per_second * 1e-9));
  if (const double share = share_of_operations(session.plan()); share < 1) {
    console.note(fmt::format(
        "speed: Winograd's algorithm needs {:.0f} % of the operations that the layers define; the "
        "roofline counts what is needed (--nowinograd_nonfused computes them all)",
        100 * share));
  }
}

void train(const Job& job, Session& session, Console& console, ResultRecord& record,
           Clock::time_point process_start) {
  const Config& config = *job.config;
  std::int64_t global_step = 0;
  if (config.train_dir && !config.freeze_when_forward_only) {
    if (const std::optional<Session::Restored> restored = session.restore(*config.train_dir)) {
      global_step = restored->global_step;
      console.note(fmt::format("resumed from {} at global step {}", restored->path, global_step));
    }
    for (const std::string& notice : session.notices()) {
      console.note(notice);
    }
  }
  session.start(global_step);
  record.start.value().process_to_first_step = seconds_since(process_start);
  TrainingLoop(job, session, console, record, global_step).run();
}

}  // namespace

void run_benchmark(const Config& config, std::span<const BackendKind> backends, Console& console,
                   ResultRecord& record, std::chrono::steady_clock::time_point process_start) {
  const Backend backend = make_backend(config, backends);
  record.machine = machine_of(backend);
  const Job job = make_job(config, backend);
  const Header header = header_for(job, backend);
  console.print(header_lines(header));
  if (config.benchmark_log_dir) {
    write_run_log(*config.benchmark_log_dir, {.header = header,
                                              .machine = record.machine->info,
                                              .test_id = config.benchmark_test_id,
                                              .commit = record.commit,
                                              .date = record.started});
  }
  if (job.mode != Mode::evaluation) {
    console.print(training_model_line);
  }
  if (job.evaluates()) {
    console.print(evaluation_model_line);
  }
  const Clock::time_point plan_start = Clock::now();
  Session session(job, backend);
  record.start = ResultStart{.plan = seconds_since(plan_start)};
  record.model = model_of(job, session.facts());
  record.plan = plan_of(backend, session);
  if (config.print_plan) {
    console.note(to_string(session.plan()));
  }
  note_choices(job, backend, session, console);
  if (config.simulate) {
    report_simulation(job, backend, session, console, record);
    return;
  }
  console.print(initializing_line);
  const Clock::time_point build_start = Clock::now();
  session.allocate();
  record.start->build = seconds_since(build_start);
  if (job.mode == Mode::evaluation) {
    run_evaluation(job, session, console, record);
  } else {
    train(job, session, console, record, process_start);
    add_roofline(job, backend, session, console, record);
    if (record.telemetry) {
      console.note(telemetry_line(*record.telemetry));
    }
  }
  record.memory.arena_peak_bytes = static_cast<std::int64_t>(session.measured_peak_bytes());
  record.memory.process_peak_bytes = process_peak_bytes();
}

}  // namespace cnn::bench
