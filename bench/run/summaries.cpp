#include "bench/run/summaries.h"

#include <fmt/format.h>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "bench/machine/machine_info.h"
#include "bench/plan/job.h"
#include "bench/report/graph_def.h"
#include "bench/session/session.h"
#include "bench/session/step_samples.h"
#include "bench/session/team.h"
#include "data/png_encoder.h"
#include "layers/optimizer.h"

namespace cnn::bench {
namespace {

// Returns the attributes that all updates of a step share; nothing without training.
std::optional<layers::UpdateAttributes> update_in(const Graph& graph) {
  for (const Node& node : graph.nodes()) {
    if (const auto* const update = dynamic_cast<const layers::Update*>(node.op.get())) {
      return update->attributes;
    }
  }
  return std::nullopt;
}

}  // namespace

void Summaries::start(const RunStart& run) {
  global_batch_ = run.global_batch;
  events_->graph(graph_def(*team_.first().plan().graph));
}

bool Summaries::is_due(std::int64_t number) const {
  return number % job_.config->report.summaries.every == 0;
}

void Summaries::step_starts(std::int64_t number) { team_.want_samples(is_due(number)); }

void Summaries::step_finished(const FinishedStep& step) {
  if (!started_) {
    events_->session_starts(step.global_step);
    started_ = true;
  }
  if (!step.timed() && is_due(step.number)) {  // work() handles timed steps
    write(step);
  }
}

Next Summaries::work(const FinishedStep& step) {
  write(step);
  return Next::go_on;
}

void Summaries::write(const FinishedStep& step) {
  const int verbosity = job_.config->report.summaries.verbosity;
  Summary summary;
  add_scalars(step, summary);
  if (verbosity >= 2) {
    add_samples(summary);
  }
  if (verbosity >= 3) {
    add_variables(summary);
  }
  events_->summary(step.global_step, summary);
}

void Summaries::add_scalars(const FinishedStep& step, Summary& summary) {
  if (job_.trains()) {
    summary.scalar("learning_rate", step.learning_rate);
    summary.scalar(word_of(job_.config->report.loss_type), step.loss);
    add_loss_scale(summary);
  }
  if (job_.shows_accuracies()) {
    summary.scalar("top_1_accuracy", step.values.top_1);
    summary.scalar("top_5_accuracy", step.values.top_5);
  }
  summary.scalar("images_per_sec", static_cast<double>(global_batch_) / step.values.seconds);
  summary.scalar("input_wait_seconds", step.values.input_wait);
  summary.scalar("arena_peak_bytes", static_cast<double>(team_.first().measured_peak_bytes()));
  if (const std::optional<std::int64_t> bytes = process_peak_bytes()) {
    summary.scalar("process_peak_bytes", static_cast<double>(*bytes));
  }
}

void Summaries::add_loss_scale(Summary& summary) {
  const auto update = update_in(*team_.first().plan().graph);
  if (!update) {
    return;
  }
  if (update->automatic_loss_scale) {
    team_.read_saved([](const TensorInfo& info) { return info.name == "loss_scale"; },
                     [&](const TensorInfo&, std::span<const float> values) {
                       summary.scalar("loss_scale", values.front());
                     });
  } else if (update->loss_scale != 1) {
    summary.scalar("loss_scale", update->loss_scale);
  }
}

void Summaries::add_samples(Summary& summary) {
  const StepSamples* const samples = team_.samples();
  if (samples == nullptr) {
    return;
  }
  if (job_.trains()) {
    summary.histogram("log_gradients", samples->log_gradients());
  }
  for (const StepSamples::Gradient& gradient : samples->gradients()) {
    if (gradient.values.count() > 0) {  // otherwise only log_gradients() is requested
      summary.histogram(gradient.parameter + "/gradients", gradient.values);
    }
  }
  const std::vector<StepSamples::Image> images = samples->images();
  for (std::size_t i = 0; i < images.size(); ++i) {
    const StepSamples::Image& image = images[i];
    summary.image(fmt::format("images/image/{}", i), image.height, image.width,
                  data::encode_png(image.height, image.width, image.pixels));
  }
}

void Summaries::add_variables(Summary& summary) {
  team_.read_saved([](const TensorInfo& info) { return info.role == Role::parameter; },
                   [&](const TensorInfo& info, std::span<const float> values) {
                     Histogram histogram;
                     for (const float value : values) {
                       histogram.add(value);
                     }
                     summary.histogram(info.name, histogram);
                   });
}

}  // namespace cnn::bench
