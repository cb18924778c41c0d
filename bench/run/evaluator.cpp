#include "bench/run/evaluator.h"

#include <chrono>
#include <thread>

#include "bench/report/benchmark_log.h"
#include "bench/report/reporter.h"
#include "bench/report/statistics.h"
#include "bench/run/job.h"
#include "bench/run/session.h"

namespace cnn::bench {

ResultEvaluation evaluate(const Job& job, Session& session, Console& console,
                          std::int64_t global_step) {
  StepRunner& runner = session.evaluation();
  const auto batch = static_cast<double>(job.eval_batch);
  ResultEvaluation result{.global_step = global_step,
                          .examples = job.eval_length.batches * job.eval_batch};
  double seconds = 0;
  double since_display = 0;
  for (std::int64_t step = 1; step <= job.eval_length.batches; ++step) {
    // Evaluation draws its own synthetic labels: they depend on the step's number.
    const StepValues values = runner.run(step - 1, 0);
    seconds += values.seconds;
    since_display += values.seconds;
    result.top_1 += values.top_1;
    result.top_5 += values.top_5;
    result.base_loss += values.base_loss;
    if (is_displayed_in_eval(step, job.config->display_every)) {
      const double images = batch * job.config->display_every;
      console.print(eval_step_line(step, images / since_display));
      since_display = 0;
    }
  }
  const auto batches = static_cast<double>(job.eval_length.batches);
  result.top_1 /= batches;
  result.top_5 /= batches;
  result.base_loss /= batches;
  result.images_per_sec = batches * batch / seconds;
  console.print(accuracy_line({result.top_1, result.top_5}, result.examples));
  if (job.config->benchmark_log_dir) {
    append_metrics(*job.config->benchmark_log_dir,
                   eval_metrics(global_step, {result.top_1, result.top_5}, result.images_per_sec),
                   std::chrono::system_clock::now());
  }
  return result;
}

void run_evaluation(const Job& job, Session& session, Console& console, ResultRecord& record) {
  const Config& config = *job.config;
  session.start(0);
  while (true) {
    const std::optional<Session::Restored> restored = session.restore(config.train_dir.value());
    if (restored) {
      console.print(loaded_line(restored->path));
      record.evaluation.push_back(evaluate(job, session, console, restored->global_step));
      console.print(total_lines(record.evaluation.back().images_per_sec));
    } else {
      console.print(not_found_line(config.train_dir.value()));
    }
    if (config.eval_interval_secs <= 0) {
      return;
    }
    std::this_thread::sleep_for(std::chrono::seconds(config.eval_interval_secs));
  }
}

}  // namespace cnn::bench
