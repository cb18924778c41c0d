#include "bench/report/step_record.h"

#include "bench/report/statistics.h"
#include "runtime/median.h"
#include "runtime/seconds_since.h"

namespace cnn::bench {
namespace {

using Clock = std::chrono::steady_clock;

}  // namespace

Json to_json(const ResultStep& step) {
  Json json{{"step", step.step},
            {"seconds", step.seconds},
            {"images_per_sec", step.images_per_sec},
            {"ended", step.ended},
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

Json summary_json(const RunEnd& end, std::int64_t global_batch, double ewma_weight) {
  const std::vector<double> seconds(end.step_seconds.begin(), end.step_seconds.end());
  const Speed all = speed(end.step_seconds, static_cast<double>(global_batch), ewma_weight);
  return {{"images_per_sec", all.mean},
          {"uncertainty", all.uncertainty},
          {"jitter", all.jitter},
          {"total_images_per_sec", end.images_per_sec},
          {"median_step_seconds", median(seconds)},
          {"p50_step_seconds", percentile(seconds, 0.5)},
          {"p90_step_seconds", percentile(seconds, 0.9)},
          {"p99_step_seconds", percentile(seconds, 0.99)},
          {"percent_of_roofline", nullptr}};
}

void StepRecord::start(const RunStart& run) {
  global_batch_ = run.global_batch;
  start_ = Clock::now();
}

void StepRecord::timing_starts() { result_["start"]["warm_up"] = seconds_since(start_); }

void StepRecord::step_finished(const FinishedStep& step) {
  if (!step.timed()) {
    warm_up_losses_.push_back(step.total_loss);
    return;
  }
  const StepValues& values = step.values;
  ResultStep row{.step = step.number,
                 .seconds = values.seconds,
                 .images_per_sec = static_cast<double>(global_batch_) / values.seconds,
                 .ended = in_seconds(Clock::now().time_since_epoch()),
                 .loss = step.loss,
                 .base_loss = values.base_loss,
                 .total_loss = step.total_loss,
                 .learning_rate = step.learning_rate,
                 .input_wait_seconds = values.input_wait};
  if (options_.accuracies) {
    row.top_1 = values.top_1;
    row.top_5 = values.top_5;
  }
  steps_.push_back(row);
}

void StepRecord::end(const RunEnd& end) {
  result_["warm_up_losses"] = warm_up_losses_;
  Json& steps = result_["steps"];
  for (const ResultStep& step : steps_) {
    steps.push_back(to_json(step));
  }
  if (end.timed_steps > 0) {
    result_["summary"] = summary_json(end, global_batch_, options_.ewma_weight);
  }
}

void StepRecord::failed(const RunEnd& end, std::string_view /*what*/) { this->end(end); }

}  // namespace cnn::bench
