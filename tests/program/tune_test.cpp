// Tests --tune on the CPU, which times the kernels of convolutions once and remembers the choice.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sstream>
#include <string>
#include <vector>

#include "tests/program/program.h"

namespace cnn::tests {
namespace {

using Words = std::vector<std::string>;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

std::vector<std::string> lines_with(const Finished& run, const std::string& words) {
  std::vector<std::string> found;
  std::istringstream lines(run.err);
  for (std::string line; std::getline(lines, line);) {
    if (line.find(words) != std::string::npos) {
      found.push_back(line);
    }
  }
  return found;
}

Finished train(const Words& more) {
  Words flags{"--device=cpu",           "--data_name=cifar10", "--model=resnet20",
              "--batch_size=2",         "--num_batches=3",     "--display_every=1",
              "--num_warmup_batches=0", "--tf_random_seed=7",  "--nomeasure_ceilings"};
  flags.insert(flags.end(), more.begin(), more.end());
  Finished run = run_program(flags);
  EXPECT_EQ(run.status, 0) << run.err;
  return run;
}

// Returns the printed losses without the speeds.
Words losses_in(const Finished& run) {
  Words losses;
  for (const std::string& line : run.step_lines()) {
    losses.push_back(line.substr(line.rfind('\t')));
  }
  return losses;
}

TEST(TuneOnTheCpu, TimesOnceAndRemembersWithEqualBits) {
  const TemporaryFolder folder;
  const std::string home = folder / "cache";
  const Environment cache("XDG_CACHE_HOME", home.c_str());
  const Finished first = train({"--tune"});
  EXPECT_THAT(lines_with(first, "tuning: the kernels"),
              ElementsAre(HasSubstr("for 60 s at most (--tune_seconds)")));
  EXPECT_THAT(lines_with(first, "kinds of convolution were timed"),
              ElementsAre(HasSubstr(", 0 were known")));
  const std::string file = home + "/cnn_benchmarks/plan_cache";
  const std::string kept = read_file(file);
  EXPECT_THAT(kept, HasSubstr("\tconv_backward_weights 3x3 stride 1x1"));
  const Finished second = train({"--tune"});
  EXPECT_THAT(lines_with(second, "kinds of convolution"),
              ElementsAre(HasSubstr("tuning: 0 kinds of convolution were timed in 0.0 s")));
  EXPECT_EQ(losses_in(second), losses_in(first));
  EXPECT_EQ(read_file(file), kept);
}

TEST(TuneOnTheCpu, DoesNothingUnlessAskedFor) {
  const TemporaryFolder folder;
  const std::string home = folder / "cache";
  const Environment cache("XDG_CACHE_HOME", home.c_str());
  const Finished plain = train({});
  EXPECT_THAT(lines_with(plain, "tuning"), IsEmpty());
  EXPECT_THAT(lines_with(plain, "plan cache"), IsEmpty());
  EXPECT_THAT(folder.names(), IsEmpty());
  const Finished hurried = train({"--tune", "--tune_seconds=0"});
  EXPECT_THAT(lines_with(hurried, "kinds of convolution"),
              ElementsAre(HasSubstr("more were not within --tune_seconds")));
  EXPECT_EQ(losses_in(hurried), losses_in(plain)) << "the rules decide";
}

TEST(TuneOnTheCpu, IgnoresAFileThatIsNoPlanCacheWithOneLine) {
  const TemporaryFolder folder;
  const std::string bytes(
      "\x7f"
      "ELF\0\xff\n\n\t\t\t",
      11);
  folder.write("plans", bytes);
  const Finished run = train({"--tune", "--tune_seconds=0", "--plan_cache=" + (folder / "plans")});
  EXPECT_THAT(lines_with(run, "plan cache:"),
              ElementsAre(HasSubstr("plan cache: not used, " + (folder / "plans"))));
  EXPECT_EQ(read_file(folder / "plans"), bytes) << "a file that is no plan cache stays unchanged";
}

TEST(TuneOnTheCpu, RunsTheKernelsThatTheFirstRankTimedOnBoth) {
  const TemporaryFolder folder;
  const Words flags{"--tune", "--num_gpus=2", "--variable_update=replicated",
                    "--plan_cache=" + (folder / "plans")};
  const Finished run = train(flags);
  EXPECT_THAT(
      lines_with(run, "were timed in"),
      ElementsAre(testing::AllOf(HasSubstr("rank 0: tuning: "), HasSubstr(", 0 were known"))))
      << "rank 1 adopts them and times nothing";
  EXPECT_EQ(losses_in(train(flags)), losses_in(run)) << "the choices come from the cache";
}

TEST(TuneOnTheCpu, IsRefusedWhereNothingRuns) {
  const Finished run = run_program({"--simulate=h200", "--model=resnet50", "--tune"});
  EXPECT_EQ(run.status, 1);
  EXPECT_THAT(run.err, HasSubstr("--tune times kernels on a device and --simulate has none"));
}

}  // namespace
}  // namespace cnn::tests
