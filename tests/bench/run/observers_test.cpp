#include "bench/run/observers.h"

#include <algorithm>
#include <gtest/gtest.h>
#include <string>
#include <vector>

#include "bench/ranks/interruption.h"
#include "bench/report/divergence.h"
#include "bench/report/minimum_time.h"
#include "bench/report/step_printer.h"
#include "bench/report/step_record.h"
#include "bench/report/trace_file.h"
#include "bench/run/checkpoints.h"
#include "bench/run/evaluator.h"
#include "bench/run/time_slicer.h"
#include "bench/session/op_profile.h"
#include "bench/session/team.h"
#include "tests/bench/session/small_team.h"
#include "tests/support/files.h"

namespace cnn::bench {
namespace {

// The observers of a run by these flags.
class ObservedRun {
 public:
  explicit ObservedRun(const std::vector<std::string>& flags, SliceLock* turns = nullptr,
                       bool traces = false)
      : run_(flags), interruption_(console_) {
    run_.team.start(0);
    observers_ = make_observers({.job = run_.job,
                                 .context = run_.context,
                                 .team = run_.team,
                                 .console = console_,
                                 .result = result_,
                                 .interruption = interruption_,
                                 .turns = turns,
                                 .profile = &profile_,
                                 .traces = traces});
  }

  // Returns the place of the observer of this type, or one past the last.
  template <class T>
  std::size_t place_of() const {
    const auto found = std::ranges::find_if(observers_, [](const auto& observer) {
      return dynamic_cast<const T*>(observer.get()) != nullptr;
    });
    return static_cast<std::size_t>(found - observers_.begin());
  }
  template <class T>
  bool has() const {
    return place_of<T>() < observers_.size();
  }

 private:
  tests::SmallTeam run_;
  Console console_;
  Json result_;
  MeasuredProfile profile_;
  Interruption interruption_;
  Observers observers_;
};

TEST(Observers, PrintRecordAndWatchAPlainTraining) {
  const ObservedRun run({});
  EXPECT_TRUE(run.has<StepPrinter>());
  EXPECT_TRUE(run.has<StepRecord>());
  EXPECT_TRUE(run.has<DivergenceWatch>());
  EXPECT_FALSE(run.has<Checkpoints>());
  EXPECT_FALSE(run.has<TrainingEvaluation>());
  EXPECT_FALSE(run.has<TraceWriter>());
  EXPECT_FALSE(run.has<MinimumTime>());
  EXPECT_FALSE(run.has<TimeSlicer>());
}

TEST(Observers, DoNotWatchTheLossOfAForwardOnlyRun) {
  EXPECT_FALSE(ObservedRun({"--forward_only"}).has<DivergenceWatch>());
}

// The turn comes before anybody's clock starts, and rows are made before they are marked.
TEST(Observers, StandInTheOrderInWhichTheyNeedOneAnother) {
  const tests::TemporaryFolder folder;
  SliceLock turns(folder / "turns");
  const ObservedRun run({}, &turns);
  EXPECT_EQ(run.place_of<TimeSlicer>(), 0U);
  ASSERT_TRUE(run.has<ProfileRecord>());
  EXPECT_LT(run.place_of<StepRecord>(), run.place_of<ProfileRecord>());
}

TEST(Observers, SaveCheckpointsAndEvaluateWhereFlagsAskForIt) {
  const tests::TemporaryFolder folder;
  const ObservedRun run({"--train_dir=" + folder.path().string(),
                         "--eval_during_training_every_n_steps=2", "--num_eval_batches=1"});
  EXPECT_TRUE(run.has<Checkpoints>());
  EXPECT_TRUE(run.has<TrainingEvaluation>());
  EXPECT_LT(run.place_of<Checkpoints>(), run.place_of<TrainingEvaluation>())
      << "what is evaluated is safe";
}

TEST(Observers, TraceAStepWhereTheFirstProcessWantsIt) {
  const tests::TemporaryFolder folder;
  const ObservedRun run({"--trace_file=" + (folder / "trace.json"), "--num_warmup_batches=2"},
                        nullptr, true);
  EXPECT_TRUE(run.has<TraceWriter>());
}

}  // namespace
}  // namespace cnn::bench
