#include "bench/run/evaluator.h"

#include <chrono>
#include <cmath>
#include <fmt/format.h>
#include <span>

#include "bench/flags/conditions.h"
#include "bench/flags/number_text.h"
#include "bench/plan/job.h"
#include "bench/ranks/interruption.h"
#include "bench/report/benchmark_log.h"
#include "bench/report/reporter.h"
#include "bench/session/session.h"
#include "bench/session/team.h"
#include "runtime/error.h"

namespace cnn::bench {

Json to_json(const EvaluationResult& result) {
  Json json{{"global_step", result.global_step},
            {"examples", result.examples},
            {"top_1", result.top_1},
            {"top_5", result.top_5},
            {"base_loss", result.base_loss},
            {"images_per_sec", result.images_per_sec}};
  if (!result.non_finite.empty()) {
    json["non_finite"] = result.non_finite;
  }
  return json;
}

namespace {

// Returns null if this run writes no events of evaluations. Another user may own the default
// folder: a failure to write there does not end the evaluation.
std::shared_ptr<EventFile> open_events(const Config& config, Console& console) {
  const std::string& folder = config.report.summaries.eval_dir;
  const bool wanted = config.mode.eval || writes_summaries(config);
  if (!wanted || folder.empty() || !config.checkpoint.train_dir) {
    return nullptr;
  }
  try {
    return std::make_shared<EventFile>("--eval_dir", folder);
  } catch (const Error& problem) {
    if (folder != SummaryOptions{}.eval_dir) {
      throw;
    }
    console.note(fmt::format("{}; name another folder with --eval_dir", problem.what()));
    return nullptr;
  }
}

}  // namespace

Evaluator::Evaluator(const Job& job, Team& team, Console& console, Json& result,
                     const Interruption& interruption)
    : job_(job),
      team_(team),
      console_(console),
      result_(result),
      interruption_(interruption),
      events_(open_events(*job.config, console)) {}

EvaluationResult Evaluator::evaluate(std::int64_t global_step) {
  const std::int64_t display_every = job_.config->report.display_every;
  const auto batch = static_cast<double>(job_.eval_batch.global);
  EvaluationResult sum{.global_step = global_step};
  double seconds = 0;
  double since_display = 0;
  std::int64_t done = 0;
  team_.begin_evaluation();
  while (done < job_.eval_length.batches && !interruption_.requested()) {
    // Evaluation draws different synthetic labels: they depend on the step number.
    const StepValues values = team_.evaluation_step(done);
    ++done;
    seconds += values.seconds;
    since_display += values.seconds;
    sum.top_1 += values.top_1;
    sum.top_5 += values.top_5;
    if (std::isfinite(sum.base_loss) && !std::isfinite(values.base_loss)) {
      sum.non_finite = report_non_finite(global_step, done, values.base_loss);
    }
    sum.base_loss += values.base_loss;
    if (is_displayed_in_eval(done, display_every)) {
      const double images = batch * static_cast<double>(display_every);
      console_.print(eval_step_line(done, images / since_display));
      since_display = 0;
    }
  }
  for (const std::string& note : team_.take_notes()) {
    console_.note(note);
  }
  if (job_.eval_length.batches == 0) {
    console_.note(
        "nothing was evaluated: the evaluation is 0 batches long; raise --num_eval_batches or "
        "--num_eval_epochs");
  }
  if (done == 0) {
    return sum;
  }
  const auto batches = static_cast<double>(done);
  EvaluationResult result{.global_step = global_step,
                          .examples = done * job_.eval_batch.global,
                          .top_1 = sum.top_1 / batches,
                          .top_5 = sum.top_5 / batches,
                          .base_loss = sum.base_loss / batches,
                          .images_per_sec = batches * batch / seconds,
                          .non_finite = sum.non_finite};
  report(result);
  return result;
}

std::string Evaluator::report_non_finite(std::int64_t global_step, std::int64_t batch,
                                         double loss) {
  std::string tensor = team_.first_non_finite(Team::Which::evaluation).tensor;
  console_.note(fmt::format(
      "evaluation at global step {}, batch {}: the loss is {}; {}; examples with such logits count "
      "as wrong: evaluate an earlier checkpoint, or check the data",
      global_step, batch, fixed(loss, 0),
      tensor.empty() ? std::string("what is left of the step in memory is finite")
                     : fmt::format("the first tensor in memory that is not finite is {}", tensor)));
  return tensor;
}

void Evaluator::add_events(const EvaluationResult& result) {
  if (!events_) {
    return;
  }
  Summary summary;
  summary.scalar("eval/Accuracy@1", result.top_1);
  summary.scalar("eval/Accuracy@5", result.top_5);
  summary.scalar("eval/base_loss", result.base_loss);
  summary.scalar("eval/images_per_sec", result.images_per_sec);
  events_->summary(result.global_step, summary);
}

bool Evaluator::is_interrupted() const { return interruption_.requested(); }

void Evaluator::report(const EvaluationResult& result) {
  const Accuracy accuracy{result.top_1, result.top_5};
  console_.print(accuracy_line(accuracy, result.examples));
  if (job_.config->report.log_dir) {
    append_metrics(*job_.config->report.log_dir,
                   eval_metrics(result.global_step, accuracy, result.images_per_sec),
                   std::chrono::system_clock::now());
  }
  result_["evaluation"].push_back(to_json(result));
  add_events(result);
}

void Evaluator::run() {
  const Config& config = *job_.config;
  team_.start(0);
  std::size_t noted = 0;
  while (!interruption_.requested()) {
    const std::optional<Restored> restored = team_.follow_first(
        config.checkpoint.train_dir ? team_.restore(*config.checkpoint.train_dir) : std::nullopt);
    for (const auto& notices = team_.first().notices(); noted < notices.size(); ++noted) {
      console_.note(notices[noted]);
    }
    if (restored) {
      console_.print(loaded_line(restored->path));
      console_.print(total_lines(evaluate(restored->global_step).images_per_sec));
    } else {
      console_.print(not_found_line(config.checkpoint.train_dir.value_or("")));
    }
    if (config.eval.interval_secs <= 0) {
      break;
    }
    interruption_.wait(std::chrono::seconds(config.eval.interval_secs));
    team_.agree();
  }
  if (interruption_.requested()) {
    console_.note(fmt::format("interrupted: {}", interruption_.reason()));
  }
}

bool TrainingEvaluation::work_is_due(const FinishedStep& step) const {
  return job_.eval_schedule.due(step.number, timed_steps_);
}

Next TrainingEvaluation::work(const FinishedStep& step) {
  console_.print(eval_start_line(step.global_step));
  const double accuracy = evaluator_.evaluate(step.global_step).top_1;
  if (evaluator_.is_interrupted()) {
    return Next::stop;
  }
  // Upstream tests the number for truth, so zero counts as not set.
  const double wanted = job_.config->eval.stop_at_top_1_accuracy.value_or(0);
  if (wanted != 0 && accuracy >= wanted) {
    console_.print(early_stop_line(wanted));
    reached_ = true;
    return Next::stop;
  }
  console_.print(resuming_line);
  return Next::go_on;
}

void TrainingEvaluation::end(const RunEnd& end) {
  if (!reached_) {
    console_.print(final_eval_line(end.global_step));
    evaluator_.evaluate(end.global_step);
  }
}

}  // namespace cnn::bench
