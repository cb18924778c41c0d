#include "bench/report/result_json.h"

#include <fmt/chrono.h>
#include <fmt/format.h>
#include <variant>

#include "bench/flags/flag_table.h"

namespace cnn::bench {

namespace {

template <class Value>
Json or_null(const std::optional<Value>& value) {
  return value ? Json(*value) : Json(nullptr);
}

Json to_json(const GpuInfo& gpu) {
  return {{"name", gpu.name},
          {"driver", gpu.driver},
          {"compute_capability", gpu.compute_capability},
          {"multiprocessors", gpu.multiprocessors},
          {"memory_bytes", gpu.memory_bytes},
          {"clock_mhz", gpu.clock_mhz},
          {"memory_clock_mhz", gpu.memory_clock_mhz}};
}

Json to_json(const ResultMachine& machine) {
  Json libraries = Json::object();
  for (const auto& [name, version] : machine.libraries) {
    libraries[name] = version;
  }
  return {{"cpu",
           {{"name", machine.info.cpu_name},
            {"cores_used", machine.cores_used},
            {"instruction_sets", machine.instruction_sets}}},
          {"gpu", machine.gpu ? to_json(*machine.gpu) : Json(nullptr)},
          {"memory_bytes", machine.info.memory_total},
          {"host", machine.info.host},
          {"libraries", libraries}};
}

Json to_json(const ResultModel& model) {
  return {{"name", model.name},
          {"data_set", model.data_set},
          {"image_size", model.image_size},
          {"classes", model.classes},
          {"trainable_parameters", model.trainable_parameters},
          {"trainable_tensors", model.trainable_tensors},
          {"forward_macs", model.forward_macs}};
}

Json to_json(const ResultPlan& plan) {
  return {{"layout", plan.layout},
          {"precision", plan.precision},
          {"arena_bytes", plan.arena_bytes},
          {"lower_bound_bytes", plan.lower_bound_bytes},
          {"host_bytes", plan.host_bytes},
          {"workspace_bytes", plan.workspace_bytes},
          {"predicted_step_seconds", or_null(plan.predicted_step_seconds)},
          {"lms", nullptr}};
}

Json to_json(const ResultStart& start) {
  return {{"process_to_first_step", start.process_to_first_step},
          {"build", start.build},
          {"plan", start.plan},
          {"warm_up", start.warm_up}};
}

Json to_json(const ResultStep& step) {
  Json json{{"step", step.step},
            {"seconds", step.seconds},
            {"images_per_sec", step.images_per_sec},
            {"loss", step.loss},
            {"base_loss", step.base_loss},
            {"total_loss", step.total_loss},
            {"learning_rate", step.learning_rate},
            {"input_wait_seconds", step.input_wait_seconds}};
  if (step.top_1) {
    json["top_1"] = *step.top_1;
  }
  if (step.top_5) {
    json["top_5"] = *step.top_5;
  }
  return json;
}

Json to_json(const ResultSummary& summary) {
  return {{"images_per_sec", summary.images_per_sec},
          {"uncertainty", summary.uncertainty},
          {"jitter", summary.jitter},
          {"total_images_per_sec", summary.total_images_per_sec},
          {"median_step_seconds", summary.median_step_seconds},
          {"percent_of_roofline", or_null(summary.percent_of_roofline)}};
}

Json to_json(const ResultEvaluation& evaluation) {
  return {{"global_step", evaluation.global_step},
          {"examples", evaluation.examples},
          {"top_1", evaluation.top_1},
          {"top_5", evaluation.top_5},
          {"base_loss", evaluation.base_loss},
          {"images_per_sec", evaluation.images_per_sec}};
}

Json to_json(const ResultSimulation& simulation) {
  Json by_op = Json::array();
  for (const ResultSimulation::Op& op : simulation.by_op) {
    by_op.push_back({{"op", op.op},
                     {"nodes", op.nodes},
                     {"seconds", op.seconds},
                     {"bytes", op.bytes},
                     {"flops", op.flops}});
  }
  return {{"machine", simulation.machine},
          {"source", simulation.source},
          {"fusion", simulation.fusion},
          {"flops_per_second", simulation.flops_per_second},
          {"bytes_per_second", simulation.bytes_per_second},
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
          {"by_op", by_op}};
}

void add_if_known(Json& json, const char* key, const std::optional<Range>& range) {
  if (range) {
    json[key] = {{"min", range->min}, {"mean", range->mean}, {"max", range->max}};
  }
}

void add_if_known(Json& json, const char* key, const std::optional<double>& value) {
  if (value) {
    json[key] = *value;
  }
}

Json to_json(const Telemetry& telemetry) {
  Json json{{"source", telemetry.facts.source},
            {"samples", telemetry.samples},
            {"seconds", telemetry.seconds}};
  add_if_known(json, "clock_mhz", telemetry.clock_mhz);
  add_if_known(json, "highest_clock_mhz", telemetry.facts.highest_clock_mhz);
  add_if_known(json, "memory_clock_mhz", telemetry.memory_clock_mhz);
  add_if_known(json, "watts", telemetry.watts);
  add_if_known(json, "power_limit_watts", telemetry.facts.power_limit_watts);
  add_if_known(json, "celsius", telemetry.celsius);
  add_if_known(json, "memory_bytes", telemetry.memory_bytes);
  if (telemetry.throttled) {
    Json shares = Json::object();
    for (const Telemetry::Throttle& throttle : *telemetry.throttled) {
      shares[throttle.reason] = throttle.share;
    }
    json["throttled"] = shares;
  }
  add_if_known(json, "joules", telemetry.joules);
  if (telemetry.joules) {
    json["joules_from"] = telemetry.joules_counted ? "counter" : "power";
  }
  add_if_known(json, "images_per_joule", telemetry.images_per_joule);
  return json;
}

template <class Part>
Json part_or_null(const std::optional<Part>& part) {
  return part ? to_json(*part) : Json(nullptr);
}

template <class Part>
Json list(const std::vector<Part>& parts) {
  Json json = Json::array();
  for (const Part& part : parts) {
    json.push_back(to_json(part));
  }
  return json;
}

struct ToJson {
  Json operator()(std::monostate) const { return nullptr; }
  template <class Value>
  Json operator()(const Value& value) const {
    return value;
  }
};

}  // namespace

Json config_json(const Config& config) {
  Json json = Json::object();
  for (const FlagGroup& group : flag_groups()) {
    for (const Flag& flag : group.flags) {
      if (flag.renamed_to.empty()) {
        json[std::string(flag.name)] = std::visit(ToJson{}, plain_value(flag, config));
      }
    }
  }
  return json;
}

Json result_json(const ResultRecord& record) {
  Json json{{"program", "cnn_benchmarks"},
            {"version", record.version},
            {"commit", or_null(record.commit)},
            {"command", record.command},
            {"started", utc_text(record.started)},
            {"config", config_json(record.config)},
            {"machine", part_or_null(record.machine)},
            {"model", part_or_null(record.model)},
            {"plan", part_or_null(record.plan)},
            {"memory",
             {{"arena_peak_bytes", or_null(record.memory.arena_peak_bytes)},
              {"process_peak_bytes", or_null(record.memory.process_peak_bytes)}}},
            {"start", part_or_null(record.start)},
            {"steps", list(record.steps)},
            {"warm_up_losses", record.warm_up_losses},
            {"summary", part_or_null(record.summary)},
            {"evaluation", list(record.evaluation)}};
  if (record.telemetry) {
    json["telemetry"] = to_json(*record.telemetry);
  }
  if (record.simulation) {
    json["simulation"] = to_json(*record.simulation);
  }
  if (record.error) {
    json["error"] = *record.error;
  }
  return json;
}

void write_result(const std::string& path, const ResultRecord& record) {
  // Text from outside (paths, host names) need not be UTF-8: replace what is not.
  const std::string text = result_json(record).dump(1, ' ', false, Json::error_handler_t::replace);
  write_file_atomically(path, text + "\n");
}

std::string utc_text(std::chrono::system_clock::time_point when) {
  const auto micros = std::chrono::floor<std::chrono::microseconds>(when);
  const auto seconds = std::chrono::floor<std::chrono::seconds>(micros);
  return fmt::format("{:%Y-%m-%dT%H:%M:%S}.{:06}Z",
                     fmt::gmtime(std::chrono::system_clock::to_time_t(seconds)),
                     (micros - seconds).count());
}

}  // namespace cnn::bench
