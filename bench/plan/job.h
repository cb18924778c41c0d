#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "bench/flags/config.h"
#include "bench/flags/sizes.h"
#include "bench/plan/compile.h"
#include "bench/report/observer.h"
#include "data/dataset.h"
#include "models/learning_rate.h"
#include "models/model.h"

namespace cnn::bench {

struct RankContext;

// Examples of a step: of one device, and of all devices of the run together.
struct BatchSize {
  std::int64_t per_device = 0, global = 0;
};

// The flags as values for this backend: sizes, data and schedules, all decided before
// anything is built.
struct Job {
  const Config* config = nullptr;
  const models::Model* model = nullptr;
  Mode mode = Mode::training;
  std::int64_t image_size = 0;
  int ranks = 1;  // devices of the run, in whatever processes
  BatchSize batch, eval_batch;
  DataType compute = DataType::f32;
  InputFormat input;
  std::unique_ptr<data::Dataset> train_data, eval_data;  // null: synthetic, or not needed
  std::int64_t train_examples = 0, eval_examples = 0;    // of an epoch
  Length length;                                         // of the training, or of forward only
  Length eval_length;                                    // in global batches of eval_batch
  // Seconds of timed steps after which the run ends, which is then as long as it takes; 0: `length`
  // says when.
  double min_time = 0;
  std::int64_t warm_up = 0;
  EvalSchedule eval_schedule;
  models::LearningRate rate;
  std::vector<std::string> notices;  // what the user should know of the data

  bool trains() const { return mode == Mode::training || mode == Mode::training_and_evaluation; }
  bool evaluates() const {
    return mode == Mode::evaluation || mode == Mode::training_and_evaluation;
  }
  bool shows_accuracies() const;   // of the steps
  bool keeps_checkpoints() const;  // goes on from those in --train_dir, and saves there

  double total_loss(const StepValues& values) const;  // with the weight decay
  double reported_loss(const StepValues& values) const;
};

// Backend::ranks counts the processes. Opens the data sets that the mode needs. Throws Error:
// unknown model, damaged data, images that do not fit the model, contradictory lengths.
Job make_job(const Config& config, const RankContext& context);

}  // namespace cnn::bench
