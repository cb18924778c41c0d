#include "bench/run/lms_stats.h"

#include <gtest/gtest.h>
#include <string>

#include "bench/report/console.h"
#include "bench/session/session.h"
#include "bench/session/team.h"
#include "tests/bench/session/small_team.h"
#include "tests/support/error_of.h"
#include "tests/support/files.h"

namespace cnn::bench {
namespace {

// Returns a run whose step has two images of 32x32, which are 0.002048 megapixels.
tests::SmallTeam counted_run(const std::string& folder, const std::string& more) {
  return tests::SmallTeam(
      {"--lms", "--lms_stats", "--lms_stats_average", "--output_dir=" + folder, more});
}

FinishedStep counted_step(std::int64_t number, std::int64_t global_step, double seconds) {
  return {.number = number, .global_step = global_step, .values = {.seconds = seconds}};
}

const std::string average_title =
    "image_size,megapixels/sec,median megapixels/sec,gib_reclaimed,allocs,num_steps,reclaim_alls,"
    "reclaim_ones,time\n";

TEST(LmsStats, HaveALineForEachTimedStepWithItsEpoch) {
  const tests::TemporaryFolder folder;
  const tests::SmallTeam run = counted_run(folder / "new", "--lms_stats_warmup_steps=0");
  const std::size_t allocs = run.team.first().plan().memory.blocks.size();
  ASSERT_GT(allocs, 0U);
  Console console;
  LmsStats stats(run.job, run.team.first(), console);
  stats.step_finished(counted_step(0, 24'999, 9));
  // The step with the last of the 50000 examples.
  stats.step_finished(counted_step(1, 25'000, 0.5));
  stats.step_finished(counted_step(2, 25'001, 0.25));
  const std::string counts = std::to_string(allocs) + ",0,0,0.0\n";
  EXPECT_EQ(tests::read_file(folder / "new/trivial_lms_stats.csv"),
            "step type,epoch,step,duration,allocs,reclaimOnes,reclaimAlls,GiB reclaimed\n"
            "t,0,1,0.5," +
                counts + "t,1,2,0.25," + counts);
}

TEST(LmsStats, AverageTheStepsBehindTheirWarmUp) {
  const tests::TemporaryFolder folder;
  const tests::SmallTeam run = counted_run(folder.path().string(), "--lms_stats_warmup_steps=1");
  const std::string allocs = std::to_string(run.team.first().plan().memory.blocks.size());
  Console console;
  LmsStats stats(run.job, run.team.first(), console);
  int number = 0;
  for (const double seconds : {100.0, 2.0, 2.0, 2.0, 10.0}) {
    ++number;
    stats.step_finished(counted_step(number, number, seconds));
  }
  stats.end({});
  EXPECT_EQ(tests::read_file(folder / "trivial_lms_stats_average.csv"),
            average_title + "32,0.000512,0.001024,0.0," + allocs + ".0,4,0.0,0.0,4.0\n");
}

TEST(LmsStats, AddALineToTheAveragesOfEarlierRuns) {
  const tests::TemporaryFolder folder;
  const tests::SmallTeam run = counted_run(folder.path().string(), "--lms_stats_warmup_steps=0");
  const std::string allocs = std::to_string(run.team.first().plan().memory.blocks.size());
  Console console;
  for (int i = 0; i < 2; ++i) {
    LmsStats stats(run.job, run.team.first(), console);
    stats.step_finished(counted_step(1, 1, 2.0));
    stats.end({});
  }
  const std::string row = "32,0.001024,0.001024,0.0," + allocs + ".0,1,0.0,0.0,2.0\n";
  EXPECT_EQ(tests::read_file(folder / "trivial_lms_stats_average.csv"), average_title + row + row);
}

TEST(LmsStats, HaveNoAverageWithoutAStepAfterTheirWarmUp) {
  const tests::TemporaryFolder folder;
  const tests::SmallTeam run = counted_run(folder.path().string(), "--lms_stats_warmup_steps=3");
  Console console;
  LmsStats stats(run.job, run.team.first(), console);
  stats.step_finished(counted_step(3, 3, 2.0));
  testing::internal::CaptureStderr();
  stats.end({});
  EXPECT_EQ(testing::internal::GetCapturedStderr(),
            "--lms_stats_average: no row for this run, which has no timed step after the 3 of "
            "--lms_stats_warmup_steps\n");
  EXPECT_EQ(tests::read_file(folder / "trivial_lms_stats_average.csv"), "");
}

TEST(LmsStats, NameTheFlagsWhoseFileCannotBeWritten) {
  const tests::TemporaryFolder folder;
  folder.write("file", "");
  const tests::SmallTeam run = counted_run(folder / "file", "--lms_stats_warmup_steps=0");
  Console console;
  EXPECT_EQ(tests::error_of([&] { LmsStats stats(run.job, run.team.first(), console); }),
            "--lms_stats, --output_dir=" + (folder / "file/trivial_lms_stats.csv") +
                ": cannot write it: Not a directory");
}

}  // namespace
}  // namespace cnn::bench
