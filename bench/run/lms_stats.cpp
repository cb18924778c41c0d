#include "bench/run/lms_stats.h"

#include <filesystem>
#include <fmt/format.h>
#include <numeric>

#include "bench/plan/job.h"
#include "bench/plan/training_ranks.h"
#include "bench/report/console.h"
#include "bench/report/output_file.h"
#include "bench/report/statistics.h"
#include "bench/session/session.h"
#include "lms/python_text.h"
#include "runtime/median.h"

namespace cnn::bench {
namespace {

constexpr std::string_view steps_flag = "--lms_stats, --output_dir";
constexpr std::string_view average_flag = "--lms_stats_average, --output_dir";
constexpr std::string_view step_columns =
    "step type,epoch,step,duration,allocs,reclaimOnes,reclaimAlls,GiB reclaimed\n";
constexpr std::string_view average_columns =
    "image_size,megapixels/sec,median megapixels/sec,gib_reclaimed,allocs,num_steps,reclaim_alls,"
    "reclaim_ones,time\n";

}  // namespace

LmsStats::LmsStats(const Job& job, const Session& session, Console& console)
    : job_(job), session_(session), console_(console) {
  const LmsFlags& flags = job.config->lms;
  const std::string start = fmt::format("{}/{}", flags.output_dir, job.model->name);
  make_folder_of(start);
  if (flags.stats) {
    steps_path_ = start + "_lms_stats.csv";
    OutputFile(steps_flag, *steps_path_).write(step_columns);
  }
  if (flags.stats_average) {
    average_path_ = start + "_lms_stats_average.csv";
    append_to_file(average_flag, *average_path_, "");
  }
}

LmsStats::Counts LmsStats::counts() const {
  const LmsReport& report = *session_.lms();
  const lms::Summary& did = report.summary;
  return {.allocs = session_.plan().memory.blocks.size(),
          .reclaims = report.reclaims.value_or(lms::Reclaims{.ones = did.swap_outs}),
          .gib = static_cast<double>(did.bytes_out) / (1U << 30U)};
}

void LmsStats::step_finished(const FinishedStep& step) {
  if (!step.timed()) {
    return;
  }
  if (steps_path_) {
    const Counts now = counts();
    const std::int64_t epoch =
        (step.global_step - 1) * examples_per_step(job_) / job_.train_examples;
    append_to_file(steps_flag, *steps_path_,
                   fmt::format("t,{},{},{},{},{},{},{}\n", epoch, step.number,
                               lms::python_text(step.values.seconds), now.allocs, now.reclaims.ones,
                               now.reclaims.alls, lms::python_text(now.gib)));
  }
  if (step.number > job_.config->lms.stats_warmup_steps) {
    seconds_.push_back(step.values.seconds);
  }
}

std::string LmsStats::average() const {
  const auto steps = static_cast<double>(seconds_.size());
  const double mean = std::accumulate(seconds_.begin(), seconds_.end(), 0.0) / steps;
  const double middle = median(seconds_);
  const auto side = static_cast<double>(job_.image_size);
  const double megapixels = 1e-6 * side * side * static_cast<double>(job_.batch.per_device);
  const auto rate = [&](double seconds) { return seconds > 0 ? megapixels / seconds : 0; };
  const auto text = [](double value) { return lms::python_text(value); };
  const Counts now = counts();
  return fmt::format("{},{},{},{},{},{},{},{},{}\n", job_.image_size, text(rate(mean)),
                     text(rate(middle)), text(now.gib), text(static_cast<double>(now.allocs)),
                     seconds_.size(), text(static_cast<double>(now.reclaims.alls)),
                     text(static_cast<double>(now.reclaims.ones)), text(mean));
}

void LmsStats::end(const RunEnd& /*end*/) {
  if (average_path_ && seconds_.empty()) {
    console_.note(fmt::format(
        "--lms_stats_average: no row for this run, which has no timed step after the {} of "
        "--lms_stats_warmup_steps",
        job_.config->lms.stats_warmup_steps));
  } else if (average_path_) {
    std::error_code none;
    const bool is_new = std::filesystem::file_size(*average_path_, none) == 0;
    append_to_file(average_flag, *average_path_,
                   (is_new ? std::string(average_columns) : std::string()) + average());
  }
}

}  // namespace cnn::bench
