#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include "bench/flags/json.h"
#include "bench/report/console.h"
#include "bench/report/event_file.h"
#include "bench/report/observer.h"

namespace cnn::bench {

class Interruption;
struct Job;
class Team;

// The result of an evaluation with the variables of that global step.
struct EvaluationResult {
  std::int64_t global_step = 0, examples = 0;
  double top_1 = 0, top_5 = 0;
  double base_loss = 0;  // mean over examples
  double images_per_sec = 0;
  std::string non_finite;  // the first non-finite tensor if a batch's loss was non-finite
};
Json to_json(const EvaluationResult& result);  // an item of the section "evaluation"

// Evaluates: prints a line every --display_every steps and the accuracy, writes the benchmark log,
// and adds to the result's section "evaluation".
class Evaluator {
 public:
  // Creates a TensorBoard event file in --eval_dir if one is requested. Throws Error on failure,
  // except in the default folder. References must outlive the evaluator.
  Evaluator(const Job& job, Team& team, Console& console, Json& result,
            const Interruption& interruption);

  // Evaluates; after an interruption the result covers the examples until then.
  EvaluationResult evaluate(std::int64_t global_step);

  bool is_interrupted() const;

  // Runs mode --eval: loads the newest checkpoint of --train_dir and evaluates it, repeatedly with
  // --eval_interval_secs. The team must be allocated.
  void run();

 private:
  void report(const EvaluationResult& result);
  void add_events(const EvaluationResult& result);
  // Reports the first batch with a non-finite loss. Returns the name of a tensor, or nothing.
  std::string report_non_finite(std::int64_t global_step, std::int64_t batch, double loss);

  const Job& job_;
  Team& team_;
  Console& console_;
  Json& result_;
  const Interruption& interruption_;
  std::shared_ptr<EventFile> events_;  // null: no events
};

// Evaluates a training at the requested steps and at its end; stops it at the target accuracy.
class TrainingEvaluation final : public Observer {
 public:
  // References must outlive this.
  TrainingEvaluation(const Job& job, Evaluator evaluator, Console& console)
      : job_(job), evaluator_(std::move(evaluator)), console_(console) {}

  void start(const RunStart& run) override { timed_steps_ = run.timed_steps; }
  bool work_is_due(const FinishedStep& step) const override;
  Next work(const FinishedStep& step) override;
  void end(const RunEnd& end) override;
  void interrupted(const RunEnd&, std::string_view) override {}

 private:
  const Job& job_;
  Evaluator evaluator_;
  Console& console_;
  std::int64_t timed_steps_ = 0;
  bool reached_ = false;  // the target accuracy
};

}  // namespace cnn::bench
