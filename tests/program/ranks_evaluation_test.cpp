#include <string>
#include <vector>

#include "tests/program/rank_training.h"

namespace cnn::tests {
namespace {

using Flags = std::vector<std::string>;

class RanksEvaluate : public SeveralProcesses {
 protected:
  const TemporaryFolder folder_;
  const std::string examples_ = write_examples(folder_, 48);

  Flags on_examples(Flags flags) const {
    const Flags more{"--variable_update=replicated", "--data_name=tensors", "--tensors_as=cifar10",
                     "--data_dir=" + examples_, "--num_eval_batches=2"};
    flags.insert(flags.begin(), more.begin(), more.end());
    return rank_flags(folder_.path().string(), flags);
  }
  nlohmann::json evaluations() const {
    return nlohmann::json::parse(read_file(folder_ / "r.json")).at("evaluation");
  }
};

// Batch norms use the running averages of rank 0, which come from other batches than those of the
// other ranks.
TEST_F(RanksEvaluate, TheSameWhileTheyTrainAsOneProcessFromTheirCheckpoint) {
  const Finished trained = run_as(2, on_examples({"--batch_size=4", "--eval_batch_size=8",
                                                  "--eval_during_training_every_n_steps=2"}));
  ASSERT_EQ(trained.status, 0) << trained.err;
  const nlohmann::json during = evaluations();
  ASSERT_EQ(during.size(), 2U);
  EXPECT_EQ(during[0].at("global_step"), 3);
  EXPECT_EQ(during[1].at("examples"), 32);
  const double loss = during[1].at("base_loss").get<double>();
  for (const auto& [processes, more] : {std::pair<int, Flags>(1, {"--batch_size=16"}),
                                        {2, {"--batch_size=8"}},
                                        {2, {"--batch_size=4", "--num_gpus=2"}}}) {
    Flags flags{"--eval"};
    flags.insert(flags.end(), more.begin(), more.end());
    const Finished run = run_as(processes, on_examples(flags));
    ASSERT_EQ(run.status, 0) << run.err;
    const nlohmann::json alone = evaluations();
    ASSERT_EQ(alone.size(), 1U);
    EXPECT_EQ(alone[0].at("global_step"), 4);
    EXPECT_EQ(alone[0].at("examples"), 32);
    EXPECT_NEAR(alone[0].at("base_loss").get<double>(), loss, 1e-5 * loss) << processes;
    EXPECT_EQ(alone[0].at("top_1"), during[1].at("top_1"));
    EXPECT_EQ(alone[0].at("top_5"), during[1].at("top_5"));
    EXPECT_EQ(lines_with(run, "Accuracy @ 1"), 1U) << run.out;
    EXPECT_EQ(lines_with(run, " examples/sec"), 2U) << run.out;
    EXPECT_EQ(lines_with(run, "Successfully loaded model from"), 1U) << run.out;
  }
}

TEST_F(RanksEvaluate, EvaluateAtTheRequestedStepsAndReportOnce) {
  const Finished run =
      run_as(2, on_examples({"--eval_during_training_at_specified_steps=1,3", "--num_batches=4"}));
  ASSERT_EQ(run.status, 0) << run.err;
  EXPECT_EQ(run.step_lines().size(), 4U) << run.out;
  EXPECT_EQ(lines_with(run, "Running evaluation at global_step"), 2U);
  EXPECT_EQ(lines_with(run, "Resuming training"), 2U);
  EXPECT_EQ(lines_with(run, "Running final evaluation at global_step 5"), 1U) << run.out;
  EXPECT_EQ(lines_with(run, "Accuracy @ 1"), 3U);
}

TEST_F(RanksEvaluate, StopTogetherAtTheRequestedAccuracy) {
  const Finished run = run_as(2, on_examples({"--eval_during_training_every_n_steps=2",
                                              "--num_batches=100", "--stop_at_top_1_accuracy=-1"}));
  ASSERT_EQ(run.status, 0) << run.err;
  EXPECT_EQ(run.step_lines().size(), 2U) << run.out;
  EXPECT_EQ(lines_with(run, "Stopping, as eval accuracy at least"), 1U);
  EXPECT_EQ(lines_with(run, "Running final evaluation"), 0U);
}

TEST_F(RanksEvaluate, NothingWithoutACheckpoint) {
  const Finished run = run_as(2, on_examples({"--eval"}));
  EXPECT_EQ(run.status, 0) << run.err;
  EXPECT_EQ(lines_with(run, "Checkpoint not found in"), 1U) << run.out;
}

}  // namespace
}  // namespace cnn::tests
