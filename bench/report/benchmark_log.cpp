#include "bench/report/benchmark_log.h"

#include <utility>

#include "bench/flags/number_text.h"
#include "bench/report/output_file.h"
#include "bench/report/result_json.h"

namespace cnn::bench {

namespace {

constexpr std::string_view flag = "--benchmark_log_dir";

// Returns one run parameter: the key of the value states its type, and switches are text.
Json parameter(std::string_view name, const char* key, Json value) {
  return {{"name", name}, {key, std::move(value)}};
}

Json parameters(const Header& header) {
  const auto text = [](std::string_view name, std::string_view value) {
    return parameter(name, "string_value", value);
  };
  // Parameters are sorted by name. rewrite_config and session_config are objects of TensorFlow.
  return {parameter("batch_size", "long_value", header.global_batch),
          parameter("batch_size_per_device", "long_value", header.per_device_batch),
          text("data_format", header.data_format),
          text("dataset", header.dataset + (header.synthetic ? " (synthetic)" : "")),
          text("devices", quoted_list(header.devices)),
          text("mode", mode_name(header.mode)),
          text("model", header.model),
          header.min_time > 0 ? parameter("min_time", "float_value", header.min_time)
                              : parameter("num_batches", "long_value", header.length.batches),
          parameter("num_epochs", "float_value", header.length.epochs),
          text("optimizer", header.optimizer),
          text("rewrite_config", header.rewriter_config.value_or("None")),
          text("session_config", "None"),
          parameter("single_sess", "bool_value", header.single_session ? "True" : "False")};
}

std::string dump(const Json& json) {
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

}  // namespace

Json run_log(const RunDescription& run) {
  return {{"model_name", run.header.model},
          {"dataset", {{"name", run.header.dataset}}},
          {"machine_config",
           {{"cpu_info",
             {{"num_cores", run.machine.processors},
              {"cpu_info", run.machine.cpu_name},
              {"mhz_per_cpu", run.machine.mhz}}},
            {"memory_total", run.machine.memory_total},
            {"memory_available", run.machine.memory_available}}},
          {"test_id", run.test_id ? Json(*run.test_id) : Json(nullptr)},
          {"run_date", utc_text(run.date)},
          {"tensorflow_version",
           {{"version", "cnn_benchmarks " + run.header.version},
            {"git_hash", run.commit ? Json(*run.commit) : Json(nullptr)}}},
          {"tensorflow_environment_variables", Json::array()},
          {"run_parameters", parameters(run.header)}};
}

std::vector<Metric> step_metrics(std::int64_t step, double images_per_second,
                                 const std::optional<Accuracy>& accuracy) {
  std::vector<Metric> metrics{{"current_examples_per_sec", images_per_second, step}};
  if (accuracy) {
    metrics.push_back({"top_1_accuracy", accuracy->top_1, step});
    metrics.push_back({"top_5_accuracy", accuracy->top_5, step});
  }
  return metrics;
}

Metric end_metric(std::int64_t steps, double images_per_second) {
  return {"average_examples_per_sec", images_per_second, steps};
}

std::vector<Metric> eval_metrics(std::int64_t global_step, const Accuracy& accuracy,
                                 double images_per_second) {
  return {{"eval_top_1_accuracy", accuracy.top_1, global_step},
          {"eval_top_5_accuracy", accuracy.top_5, global_step},
          {"eval_average_examples_per_sec", images_per_second, global_step}};
}

std::string metric_line(const Metric& metric, std::chrono::system_clock::time_point when) {
  const Json json{{"name", metric.name},
                  {"value", metric.value},
                  {"unit", nullptr},
                  {"global_step", metric.global_step},
                  {"timestamp", utc_text(when)},
                  {"extras", Json::array()}};
  return dump(json);
}

void write_run_log(const std::string& folder, const RunDescription& run) {
  const std::string path = folder + "/benchmark_run.log";
  make_folder_of(path);
  OutputFile(flag, path).write(dump(run_log(run)) + "\n");
  append_metrics(folder, {}, run.date);  // tests that the file is writable
}

void append_metrics(const std::string& folder, const std::vector<Metric>& metrics,
                    std::chrono::system_clock::time_point when) {
  std::string lines;
  for (const Metric& metric : metrics) {
    lines += metric_line(metric, when) + "\n";
  }
  append_to_file(flag, folder + "/metric.log", lines);
}

MetricLog::MetricLog(std::string folder, Options options)
    : folder_(std::move(folder)), options_(options), average_(options.ewma_weight) {}

void MetricLog::start(const RunStart& run) { global_batch_ = run.global_batch; }

void MetricLog::step_finished(const FinishedStep& step) {
  if (!step.timed()) {
    return;
  }
  average_.add(step.step_seconds.back());
  if (!is_displayed(step.number, options_.display_every)) {
    return;
  }
  std::optional<Accuracy> accuracy;
  if (options_.accuracies) {
    accuracy = Accuracy{step.values.top_1, step.values.top_5};
  }
  const double images_per_second = static_cast<double>(global_batch_) / average_.seconds();
  append_metrics(folder_, step_metrics(step.number, images_per_second, accuracy),
                 std::chrono::system_clock::now());
}

void MetricLog::end(const RunEnd& end) {
  if (end.timed_steps > 0) {
    append_metrics(folder_, {end_metric(end.timed_steps, end.images_per_sec)},
                   std::chrono::system_clock::now());
  }
}

}  // namespace cnn::bench
