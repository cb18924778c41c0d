#include "bench/session/step_runner.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "bench/flags/flags.h"
#include "bench/machine/cpu_backend.h"
#include "bench/ranks/rank_context.h"
#include "bench/session/session.h"

namespace cnn::bench {
namespace {

using testing::Each;

TEST(FixedLabels, LieBelowTheirBoundAndTakeAllValues) {
  const std::vector<std::int32_t> labels = fixed_labels(1000, 10, 1);
  EXPECT_THAT(labels, Each(testing::AllOf(testing::Ge(0), testing::Lt(10))));
  for (int label = 0; label < 10; ++label) {
    EXPECT_THAT(labels, testing::Contains(label));
  }
}

TEST(FixedLabels, DependOnTheSeedAndNotOnTheBatch) {
  const std::vector<std::int32_t> few = fixed_labels(20, 1000, 1), more = fixed_labels(50, 1000, 1);
  EXPECT_TRUE(std::equal(few.begin(), few.end(), more.begin()));
  EXPECT_NE(few, fixed_labels(20, 1000, 2));
  EXPECT_TRUE(fixed_labels(0, 10, 1).empty());
}

// A session whose rank publishes its progress.
class SessionWithProgress {
 public:
  explicit SessionWithProgress(const std::vector<std::string>& more = {})
      : config_(config_of(more)),
        backend_(make_backend(config_, std::array{cpu_backend()})),
        context_(context_of(backend_, progress_)),
        job_(make_job(config_, context_)),
        session_(job_, context_) {
    session_.allocate();
    session_.start(0);
  }

  StepRunner& runner() { return session_.main(); }
  std::uint64_t progress() const { return progress_; }
  Session& session() { return session_; }

 private:
  static Config config_of(const std::vector<std::string>& more) {
    std::vector<std::string> words{"--device=cpu",   "--data_name=cifar10",   "--model=trivial",
                                   "--batch_size=2", "--num_intra_threads=1", "--num_batches=4"};
    words.insert(words.end(), more.begin(), more.end());
    return parse_flags(words, {}).config;
  }
  static RankContext context_of(const Backend& backend, std::atomic<std::uint64_t>& progress) {
    RankContext context = only_rank(backend);
    context.progress = &progress;
    return context;
  }

  std::atomic<std::uint64_t> progress_{0};
  Config config_;
  Backend backend_;
  RankContext context_;
  Job job_;
  Session session_;
};

TEST(StepRunner, TellsWhereItIsAfterAStep) {
  SessionWithProgress run;
  run.runner().run(6, 0.1);
  EXPECT_EQ(run.progress(), allreduce::progress_at(allreduce::Phase::between, 6));
}

TEST(StepRunner, ReturnsLossesAndSharesOfTheBatch) {
  SessionWithProgress run({"--print_training_accuracy"});
  const StepValues values = run.runner().run(0, 0.1);
  EXPECT_GT(values.base_loss, 0);
  EXPECT_GT(values.l2, 0);
  EXPECT_GT(values.seconds, 0);
  EXPECT_EQ(values.input_wait, 0) << "synthetic";
  EXPECT_LE(values.top_1, values.top_5);
  EXPECT_LE(values.top_5, 1);
}

TEST(StepRunner, HasNoLossOfAProgramWithoutOne) {
  SessionWithProgress run({"--forward_only"});
  const StepValues values = run.runner().run(0, 0);
  EXPECT_EQ(values.base_loss, 0);
  EXPECT_EQ(values.l2, 0);
}

TEST(StepRunner, GivesTheTimeOfEveryStepOfThePlan) {
  SessionWithProgress run;
  Timeline timeline;
  run.runner().run(0, 0.1, &timeline);
  EXPECT_EQ(timeline.size(), run.runner().plan().schedule.steps.size());
  EXPECT_GT(end_of(timeline), 0);
}

TEST(StepRunner, ComputesTheSameByAnotherPlanOfItsGraph) {
  SessionWithProgress plain, replanned;
  plain.runner().run(0, 0.1);
  replanned.runner().run(0, 0.1);
  const std::size_t peak = replanned.runner().measured_peak_bytes();
  EXPECT_EQ(peak, replanned.runner().device_bytes());
  EXPECT_EQ(replanned.runner().replaced_peak_bytes(), std::nullopt);
  replanned.runner().replan(replanned.runner().plan());
  EXPECT_EQ(replanned.runner().measured_peak_bytes(), 0U) << "no step has run by the new plan";
  EXPECT_EQ(replanned.runner().replaced_peak_bytes(), peak);
  EXPECT_EQ(replanned.runner().run(1, 0.1).base_loss, plain.runner().run(1, 0.1).base_loss);
  EXPECT_EQ(replanned.runner().measured_peak_bytes(), peak);
}

// Counts the nodes that steps enqueue.
class NodeCounter final : public NodeObserver {
 public:
  void enqueued(NodeId /*node*/, const Operands& /*operands*/, Lane /*lane*/,
                Stream& /*stream*/) override {
    ++nodes;
  }
  std::size_t nodes = 0;
};

TEST(StepRunner, KeepsItsObserversUnderAnotherPlan) {
  SessionWithProgress run;
  NodeCounter counter;
  run.runner().observe(counter);
  run.runner().run(0, 0.1);
  const std::size_t once = counter.nodes;
  EXPECT_EQ(once, run.runner().plan().graph->nodes().size());
  run.runner().replan(run.runner().plan());
  run.runner().run(1, 0.1);
  EXPECT_EQ(counter.nodes, 2 * once);
}

TEST(StepRunner, NamesWhatIsNotFiniteAfterAStep) {
  SessionWithProgress run;
  run.runner().run(0, 0.1);
  EXPECT_FALSE(run.runner().first_non_finite());
  run.runner().run(1, std::numeric_limits<double>::quiet_NaN());
  const std::optional<NonFiniteTensor> found = run.runner().first_non_finite();
  ASSERT_TRUE(found);
  EXPECT_EQ(found->name, "learning_rate") << "inputs come first";
}

TEST(StepRunner, ForgetsTheTimeOfExchangesThatItWaitedFor) {
  SessionWithProgress run;
  run.runner().run(0, 0.1);
  run.runner().forget_times();
  EXPECT_EQ(run.runner().exposed_seconds(), 0);
}

}  // namespace
}  // namespace cnn::bench
