#include "bench/plan/job.h"

#include <filesystem>
#include <fmt/format.h>
#include <utility>

#include "bench/flags/conditions.h"
#include "bench/plan/training_ranks.h"
#include "bench/ranks/rank_context.h"
#include "data/catalog.h"
#include "models/catalog.h"
#include "runtime/error.h"

namespace cnn::bench {
namespace {

constexpr std::int64_t max_batches = 2'000'000'000;  // devices count steps in 32 bits

// Returns the data set whose networks --model names.
const data::Row& network_data_set(const Config& config) {
  const data::Row& row = config.data.row();
  return row.has_networks ? row : *config.data.tensors_as;
}

// Returns how a data set's bytes become network input: x * scale + shift.
InputFormat input_format(const data::Row& row, const data::Dataset& dataset) {
  return {.synthetic = false,
          .image_type = dataset.format().type,
          .scale = row.scale,
          .shift = row.shift};
}

void check_images(const Job& job, const data::Dataset& dataset, const std::string& where) {
  const data::ImageFormat format = dataset.format();
  const std::int64_t channels = job.model->channels;
  check(format.height == job.image_size && format.width == job.image_size &&
            format.channels == channels,
        fmt::format("{}: images are {}x{}x{}, but {} at --image_size={} takes {}x{}x{}", where,
                    format.height, format.width, format.channels, job.model->name, job.image_size,
                    job.image_size, job.image_size, channels));
  check(dataset.classes() <= job.model->classes,
        fmt::format("{}: {} classes, but {} tells apart {}", where, dataset.classes(),
                    job.model->name, job.model->classes));
}

// Reports a missing or empty folder before a data set looks for its files.
void check_data_folder(const std::string& dir) {
  std::error_code ignored;
  check(std::filesystem::exists(dir, ignored),
        fmt::format("--data_dir={}: there is no such folder or file; leave the flag out for "
                    "synthetic images",
                    dir));
  check(!std::filesystem::is_directory(dir, ignored) || !std::filesystem::is_empty(dir, ignored),
        fmt::format("--data_dir={}: the folder is empty; leave the flag out for synthetic images",
                    dir));
}

data::Options data_options(const Job& job) {
  const Config& config = *job.config;
  const DataOptions& data = config.data;
  return {.dir = data.dir.value_or(""),
          .training = true,
          .repeat_first = data.repeat_first,
          .classes = data.tensors_as->classes,
          .images = {.side = static_cast<int>(job.image_size),
                     .seed = static_cast<std::uint64_t>(config.seed),
                     .resize = data.resize,
                     .preprocessor = data.preprocessor,
                     .distortions = data.distortions,
                     .colours_in_yiq = data.colours_in_yiq,
                     .ml_perf = data.ml_perf,
                     .decode_crop_only = data.decode_crop_only,
                     .skip_broken = data.skip_broken,
                     .cache = data.cache,
                     .class_list = data.class_list.value_or("")}};
}

void add_notices(Job& job, const data::Dataset& dataset) {
  for (std::string& notice : dataset.notices()) {
    job.notices.push_back(std::move(notice));
  }
}

void open_data(Job& job) {
  const Config& config = *job.config;
  const data::Row& row = config.data.row();
  const std::string dir = config.data.dir.value_or("");
  if (dir.empty()) {
    check(row.has_networks, "--data_name=tensors needs --data_dir=FILE.safetensors");
    return;
  }
  check_data_folder(dir);
  data::Options options = data_options(job);
  if (job.mode != Mode::evaluation) {
    job.train_data = data::open(row, options);
    job.train_examples = job.train_data->size();
    job.input = input_format(row, *job.train_data);
    check_images(job, *job.train_data, dir);
    add_notices(job, *job.train_data);
  }
  if (job.evaluates()) {
    options.training = false;
    job.eval_data = data::open(row, options);
    job.eval_examples = job.eval_data->size();
    job.input = input_format(row, *job.eval_data);
    check_images(job, *job.eval_data, dir);
    add_notices(job, *job.eval_data);
  }
}

models::LearningRate rate_of(const Job& job) {
  // In upstream, a worker of that mode knows only its own batch.
  const bool own = job.config->variable_update == VariableUpdate::distributed_replicated;
  const models::RateContext context{
      .batch_size = own ? job.batch.per_device * job.config->num_gpus : examples_per_step(job),
      .examples_per_epoch = static_cast<double>(job.train_examples),
      .devices = training_ranks(job),
      .replicated = job.config->variable_update == VariableUpdate::replicated};
  return models::learning_rate(job.config->rate, job.model->rate, context);
}

BatchSize over_devices(std::int64_t per_device, int devices) {
  return {.per_device = per_device, .global = per_device * devices};
}

}  // namespace

std::string_view Job::eval_batch_flag() const {
  return config->eval.batch > 0 ? "--eval_batch_size" : "--batch_size";
}

std::string_view Job::batch_flag() const {
  return mode == Mode::evaluation ? eval_batch_flag() : "--batch_size";
}

bool Job::shows_accuracies() const {
  return config->report.training_accuracy || mode == Mode::forward_only;
}

bool Job::keeps_checkpoints() const {
  return config->checkpoint.train_dir && mode != Mode::evaluation &&
         runs_no_step_for(*config).empty();
}

double Job::total_loss(const StepValues& values) const {
  return values.base_loss + config->optimizer.weight_decay * values.l2;
}

double Job::reported_loss(const StepValues& values) const {
  return config->report.loss_type == LossType::base ? values.base_loss : total_loss(values);
}

Job make_job(const Config& config, const RankContext& context) {
  Job job;
  job.config = &config;
  const data::Row& row = network_data_set(config);
  job.model = &models::find(row.name, config.model.name);
  job.mode = mode_of(config);
  job.image_size = config.model.image_size.value_or(job.model->image_size);
  job.compute = context.backend.compute;
  job.train_examples = row.training_examples;
  job.eval_examples = row.validation_examples;
  open_data(job);

  job.ranks = context.ranks * config.num_gpus;
  // The predictions of --simulate_ranks are of several numbers of ranks, so the step is of one.
  const int devices = config.comm.simulate_ranks.empty() ? job.ranks : 1;
  job.batch = over_devices(per_device_batch(config.size.batch, job.model->batch_size), devices);
  const std::int64_t slices = config.lms.enabled ? config.lms.slices.count.value_or(1) : 1;
  check(job.mode == Mode::evaluation || slices <= job.batch.per_device,
        fmt::format("--lms_slices={}: a batch of {} has no more slices than that; use a smaller "
                    "number, or a larger --batch_size",
                    slices, job.batch.per_device));
  job.eval_batch = config.eval.batch > 0 ? over_devices(config.eval.batch, job.ranks) : job.batch;
  const std::int64_t examples =
      job.mode == Mode::evaluation ? job.eval_examples : job.train_examples;
  job.length = run_length(config.size.length, examples_per_step(job), examples);
  job.min_time = config.size.min_time.value_or(0);
  if (job.min_time > 0) {
    job.length = {.batches = max_batches, .epochs = 0};
  }
  job.eval_length = eval_length(config, job.eval_batch.global, job.eval_examples);
  job.warm_up =
      round_up_warm_up(warm_up_batches(config.size.warm_up_batches, config.size.autotune_threshold),
                       config.size.batch_group, staging_operations(config));
  job.eval_schedule = eval_schedule(config, job.length, examples_per_step(job), examples);
  job.rate = rate_of(job);
  return job;
}

}  // namespace cnn::bench
