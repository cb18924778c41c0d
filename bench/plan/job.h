#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
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

// Examples per step: of one device, and of all devices of the run.
struct BatchSize {
  std::int64_t per_device = 0, global = 0;
};

// The flags resolved for this backend: sizes, data and schedules, all decided before anything is
// built.
struct Job {
  const Config* config = nullptr;
  const models::Model* model = nullptr;
  Mode mode = Mode::training;
  std::int64_t image_size = 0;
  int ranks = 1;  // devices of the run in all processes
  BatchSize batch, eval_batch;
  DataType compute = DataType::f32;
  InputFormat input;
  std::unique_ptr<data::Dataset> train_data, eval_data;  // null: synthetic, or not needed
  std::int64_t train_examples = 0, eval_examples = 0;    // per epoch
  Length length;                                         // of the training, or of forward only
  Length eval_length;                                    // in global batches of eval_batch
  // Seconds of timed steps after which the run ends, regardless of its length; 0: `length` decides.
  double min_time = 0;
  std::int64_t warm_up = 0;
  EvalSchedule eval_schedule;
  models::LearningRate rate;
  std::vector<std::string> notices;  // about the data, for the user

  bool trains() const { return mode == Mode::training || mode == Mode::training_and_evaluation; }
  bool evaluates() const {
    return mode == Mode::evaluation || mode == Mode::training_and_evaluation;
  }
  // Return the flag that sets the batch of the evaluations, and that of what the mode times.
  std::string_view eval_batch_flag() const;
  std::string_view batch_flag() const;
  bool shows_accuracies() const;   // in step lines
  bool keeps_checkpoints() const;  // resumes from --train_dir and saves there

  double total_loss(const StepValues& values) const;  // includes weight decay
  double reported_loss(const StepValues& values) const;
};

// Makes the job and opens the data sets of its mode. RankContext::ranks counts the processes.
// Throws Error: unknown model, damaged data, images that do not fit the model, contradictory
// lengths.
Job make_job(const Config& config, const RankContext& context);

}  // namespace cnn::bench
