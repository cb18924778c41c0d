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

// Makes the observers of a run with these flags.
class ObservedRun {
 public:
  explicit ObservedRun(const std::vector<std::string>& flags, SliceLock* turns = nullptr,
                       bool traces = false, const std::optional<Restored>& restored = {})
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
                                 .traces = traces},
                                restored);
  }

  // Returns the position of the observer of this type, or one past the last.
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

TEST(Observers, SaveForwardOnlyToAFolderWithoutACheckpointOnly) {
  const tests::TemporaryFolder folder;
  const std::vector<std::string> flags{"--forward_only", "--train_dir=" + folder.path().string(),
                                       "--save_model_steps=5"};
  EXPECT_TRUE(ObservedRun(flags).has<Checkpoints>());
  testing::internal::CaptureStderr();
  const ObservedRun resumed(flags, nullptr, false, Restored{.path = "t/model.ckpt-7.safetensors"});
  EXPECT_EQ(testing::internal::GetCapturedStderr(),
            "--forward_only changes no variables and saves none beside t/model.ckpt-7.safetensors: "
            "--save_model_secs and --save_model_steps have no effect\n");
  EXPECT_FALSE(resumed.has<Checkpoints>());
}

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

// The time slicer comes before all observers that measure time, and the record of steps before the
// observers that mark its rows.
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
      << "a checkpoint precedes the evaluation";
}

TEST(Observers, TraceAStepWhereTheFirstProcessWantsIt) {
  const tests::TemporaryFolder folder;
  const ObservedRun run({"--trace_file=" + (folder / "trace.json"), "--num_warmup_batches=2"},
                        nullptr, true);
  EXPECT_TRUE(run.has<TraceWriter>());
}

}  // namespace
}  // namespace cnn::bench
