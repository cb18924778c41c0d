#include "bench/session/input.h"

#include <algorithm>
#include <chrono>
#include <fmt/format.h>
#include <sys/resource.h>
#include <thread>
#include <utility>
#include <vector>

#include "bench/flags/conditions.h"
#include "bench/plan/training_ranks.h"
#include "bench/ranks/interruption.h"
#include "bench/ranks/rank_context.h"
#include "bench/report/input_use.h"
#include "bench/report/reporter.h"
#include "runtime/error.h"
#include "runtime/seconds_since.h"

namespace cnn::bench {
namespace {

using Clock = std::chrono::steady_clock;

constexpr int other_buffers = 2;  // the batch in use, and the one being filled

double cpu_seconds() {
  rusage usage{};
  ::getrusage(RUSAGE_SELF, &usage);
  const auto seconds = [](const timeval& time) {
    return static_cast<double>(time.tv_sec) + 1e-6 * static_cast<double>(time.tv_usec);
  };
  return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

// Returns how many batches may be complete while the one before them is in use.
std::int64_t most_ready_batches(const Job& job) {
  return job.config->data.ready_batches + other_buffers - 1;
}

Phase phase_of(const Job& job) {
  switch (job.mode) {
    case Mode::evaluation:
      return Phase::evaluation;
    case Mode::forward_only:
      return Phase::forward_only;
    default:
      return Phase::training;
  }
}

// The part of each global batch for one device.
struct Part {
  int number = 0, parts = 1;
};

std::unique_ptr<data::Feeder> feeder_of(const Job& job, const RankContext& context, Phase phase,
                                        std::int64_t first_step, const Part& part) {
  const bool evaluation = phase == Phase::evaluation;
  const data::Dataset* dataset = evaluation ? job.eval_data.get() : job.train_data.get();
  if (dataset == nullptr) {
    return nullptr;
  }
  const Config& config = *job.config;
  const auto seed = static_cast<std::uint64_t>(config.seed);
  data::FeederOptions options{
      .batch = evaluation ? job.eval_batch.per_device : job.batch.per_device,
      .threads = input_threads(job, context),
      .buffers = other_buffers + config.data.ready_batches,
      .order = phase == Phase::training ? data::Order::shuffled : data::Order::sequential,
      .seed = seed,
      .first_step = first_step,
      .shard = part.number,
      .shards = part.parts,
      .batch_flag = evaluation ? job.eval_batch_flag() : "--batch_size",
      .device = context.backend.device.get()};
  // Image files are distorted as they are read.
  if (config.data.distortions && phase == Phase::training && !config.data.row().has_image_files) {
    options.transform = dataset->distortions(seed);
  }
  return std::make_unique<data::Feeder>(*dataset, std::move(options));
}

// Takes batches in turn from the feeders of all devices for `steps` steps or so many seconds.
// Returns the number of steps.
std::int64_t take(std::vector<std::unique_ptr<data::Feeder>>& feeders, std::int64_t steps,
                  double seconds, const Interruption& interruption) {
  const Clock::time_point start = Clock::now();
  std::int64_t taken = 0;
  while (taken < steps && !interruption.requested()) {
    if (seconds > 0 && seconds_since(start) >= seconds) {
      break;
    }
    for (const auto& feeder : feeders) {
      feeder->next();
    }
    ++taken;
  }
  return taken;
}

}  // namespace

// Returns the reader threads. If the processor computes: half of its threads, since steps wait for
// the slowest compute thread. Beside a GPU: all processors of the rank's share of the host, except
// one that launches kernels and one that copies.
int input_threads(const Job& job, const RankContext& context) {
  const DataOptions& data = job.config->data;
  if (data.threads.value_or(0) > 0) {
    return *data.threads;
  }
  if (!data.row().has_image_files) {
    return 1;  // examples are in memory
  }
  const auto cores = static_cast<int>(std::thread::hardware_concurrency());
  if (data.input_only) {
    return std::max(1, cores / job.config->num_gpus);
  }
  if (context.backend.processors.threads > 0) {
    return static_cast<int>(std::max<std::int64_t>(1, context.backend.processors.threads / 2));
  }
  return std::max(1, cores / std::max(1, context.ranks) - 2);
}

std::unique_ptr<data::Feeder> make_feeder(const Job& job, const RankContext& context, Phase phase,
                                          std::int64_t first_step) {
  const bool divided =
      !repeats_on_all_ranks(*job.config) && (phase != Phase::training || training_ranks(job) > 1);
  return feeder_of(job, context, phase, first_step,
                   divided ? Part{context.rank, context.ranks} : Part{});
}

void report_input(const Job& job, const RankContext& context, const Interruption& interruption,
                  Console& console, Json& result) {
  const Phase phase = phase_of(job);
  const bool evaluation = phase == Phase::evaluation;
  const data::Dataset& dataset = evaluation ? *job.eval_data : *job.train_data;
  std::vector<std::unique_ptr<data::Feeder>> feeders;
  feeders.reserve(static_cast<std::size_t>(job.config->num_gpus));
  for (int device = 0; device < job.config->num_gpus; ++device) {
    feeders.push_back(feeder_of(job, context, phase, 0, {device, job.config->num_gpus}));
  }
  console.print("Running warm up");
  take(feeders, job.warm_up, 0, interruption);
  console.print("Done warm up");
  const data::InputStatistics before = dataset.statistics();
  const Clock::time_point start = Clock::now();
  const double cpu_before = cpu_seconds();
  const std::int64_t request = evaluation ? job.eval_length.batches : job.length.batches;
  const std::int64_t steps = take(feeders, request, job.min_time, interruption);
  const std::int64_t batch = evaluation ? job.eval_batch.global : job.batch.global;
  const double seconds = seconds_since(start);
  const InputUse use{.read = since(dataset.statistics(), before),
                     .images = steps * batch,
                     .threads = input_threads(job, context) * job.config->num_gpus,
                     .cores = static_cast<int>(std::thread::hardware_concurrency()),
                     .seconds = seconds,
                     .waited = seconds,  // no other work
                     .cpu_seconds = cpu_seconds() - cpu_before};
  result["input"] = input_json(use);
  console.print(total_lines(static_cast<double>(use.images) / seconds));
  console.note(input_line(use));
  const std::int64_t ready = most_ready_batches(job);
  if (steps <= ready) {
    console.note(
        fmt::format("input: the interval took {} {}, and up to {} were ready before it: "
                    "this speed is none of reading; raise --num_batches",
                    steps, steps == 1 ? "batch" : "batches", ready));
  } else if (has_busy_threads(use)) {
    console.note("to read faster: " + input_advice(use));
  }
}

}  // namespace cnn::bench
