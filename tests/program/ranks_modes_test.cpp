#include <string>
#include <vector>

#include "tests/program/rank_training.h"

namespace cnn::tests {
namespace {

using Flags = std::vector<std::string>;

class RankModes : public SeveralProcesses {
 protected:
  static RankTraining train_by(int processes, const std::string& mode, const Flags& more = {}) {
    Flags flags{"--variable_update=" + mode, "--num_intra_threads=1"};
    flags.insert(flags.end(), more.begin(), more.end());
    return train_as(processes, flags);
  }
  static std::vector<double> losses_of(const RankTraining& training) {
    std::vector<double> losses;
    for (const nlohmann::json& step : training.result.at("steps")) {
      losses.push_back(step.at("loss").get<double>());
    }
    return losses;
  }
  static bool says(const RankTraining& training, const std::string& what) {
    return training.run.err.find(what) != std::string::npos;
  }
};

class SlowRankModes : public RankModes {};

// With an explicit learning rate, all these modes add the ranks' gradients.
TEST_F(RankModes, TrainEquallyIfTheySumGradients) {
  const RankTraining horovod = train_by(2, "horovod");
  for (const char* const mode : {"collective_all_reduce", "distributed_replicated"}) {
    const RankTraining other = train_by(2, mode);
    EXPECT_EQ(other.weights, horovod.weights) << mode;
    EXPECT_EQ(other.hashes(), horovod.hashes()) << mode;
    EXPECT_TRUE(says(other, "gradients and weight decay are summed")) << other.run.err;
  }
}

// With plain SGD, a mean equals a sum at half the learning rate exactly.
TEST_F(SlowRankModes, TrainWithMeansAsWithSumsAtHalfTheRate) {
  const Flags half{"--optimizer=sgd", "--init_learning_rate=0.00390625"};
  const Flags whole{"--optimizer=sgd", "--init_learning_rate=0.0078125"};
  const RankTraining sums = train_by(2, "replicated", half);
  EXPECT_EQ(train_by(2, "ddl", whole).weights, sums.weights);
  Flags towers = whole;
  towers.emplace_back("--num_gpus=2");
  EXPECT_EQ(train_by(1, "parameter_server", towers).weights, sums.weights);
}

// The original averages within a worker and adds up the workers.
TEST_F(SlowRankModes, DistributedReplicatedHasTheMeanOfTheTowersOfAProcess) {
  const Flags whole{"--optimizer=sgd", "--init_learning_rate=0.0078125", "--num_gpus=2"};
  const Flags half{"--optimizer=sgd", "--init_learning_rate=0.00390625", "--num_gpus=2"};
  const RankTraining means = train_by(2, "distributed_replicated", whole);
  EXPECT_EQ(means.weights, train_by(2, "replicated", half).weights);
  EXPECT_TRUE(says(means, "gradients are averaged in each process and summed over processes"));
}

// The weight decay is large enough to change every weight.
TEST_F(RankModes, IndependentRanksAreEachACopyOfTheSingleRun) {
  const Flags decayed{"--weight_decay=0.01"};
  const RankTraining alone = train_by(1, "independent", decayed);
  const RankTraining two = train_by(2, "independent", decayed);
  EXPECT_EQ(two.weights, alone.weights);
  EXPECT_EQ(two.hashes().size(), 1U);
  EXPECT_TRUE(says(two, "nothing is exchanged, each is a copy of the run on one device"));
  ASSERT_EQ(two.run.step_lines().size(), 6U) << two.run.out;
  for (const std::string& line : alone.run.step_lines()) {
    EXPECT_EQ(lines_with(two.run, "\t" + words_of(line).back()), 2U) << line << two.run.out;
  }
  const RankTraining other = train_by(1, "independent", {"--weight_decay=0"});
  EXPECT_NE(other.weights, alone.weights);
}

TEST_F(RankModes, IndependentTowersOfEveryProcessAreCopiesOfTheSingleRun) {
  const TemporaryFolder folder;  // for real examples, which independent copies do not divide
  Flags flags{"--weight_decay=0.01", "--data_name=tensors", "--tensors_as=cifar10",
              "--data_dir=" + write_examples(folder, 20)};
  const RankTraining alone = train_by(1, "independent", flags);
  flags.emplace_back("--num_gpus=2");
  for (const int processes : {1, 2}) {
    const RankTraining towers = train_by(processes, "independent", flags);
    EXPECT_EQ(towers.weights, alone.weights) << processes;
    EXPECT_EQ(towers.hashes().size(), 1U) << processes;
  }
}

// The first step applies zeros, every later one the gradients of the previous step. The ranks stay
// consistent.
TEST_F(RankModes, ApplyGradientsAStepLateWithRelaxedConsistency) {
  const Flags plain{"--weight_decay=0", "--num_warmup_batches=0", "--optimizer=sgd"};
  const auto losses_by = [&](const char* consistency, const char* rate) {
    Flags flags = plain;
    flags.insert(flags.end(), {std::string("--variable_consistency=") + consistency,
                               std::string("--init_learning_rate=") + rate});
    return losses_of(train_by(2, "replicated", flags));
  };
  const auto late = losses_by("relaxed", "0.01"), still = losses_by("strong", "1e-30");
  ASSERT_EQ(late.size(), 3U);
  EXPECT_EQ(late[1], still[1]);
  EXPECT_NE(late[2], still[2]);
}

TEST_F(SlowRankModes, HaveTheBitsOfTowersWithRelaxedConsistency) {
  const RankTraining processes = train_by(2, "replicated", {"--variable_consistency=relaxed"});
  const RankTraining towers =
      train_by(1, "replicated", {"--variable_consistency=relaxed", "--num_gpus=2"});
  EXPECT_EQ(processes.hashes().size(), 1U);
  EXPECT_EQ(towers.weights, processes.weights);
}

TEST_F(RankModes, SayEverySoManyStepsWhatTheExchangeTookAndGoByHorovodsVariables) {
  const Environment apart("HOROVOD_FUSION_THRESHOLD", "0");
  const RankTraining training = train_by(2, "horovod", {"--comm_dump_iter=2", "--num_batches=5"});
  EXPECT_TRUE(says(training, "comm: steps 1-2: end-to-end ")) << training.run.err;
  EXPECT_EQ(times_in(training.run.err, "comm: steps 3-4: "), 1U) << training.run.err;
  EXPECT_EQ(times_in(training.run.err, "largest jitter"), 2U);
  EXPECT_TRUE(says(training, "59 buckets by ")) << training.run.err;
  EXPECT_EQ(times_in(training.run.err, "HOROVOD_FUSION_THRESHOLD=0 sets --comm_bucket_mb=0"), 1U)
      << training.run.err;
}

TEST_F(RankModes, RefuseMisleadingModesInOneLine) {
  for (const auto& [flags, why] :
       {std::pair(Flags{"--variable_update=parameter_server"}, "use --variable_update=horovod"),
        {Flags{"--variable_update=replicated", "--num_gpus=2", "--comm_backend=mpi"},
         "start mpirun -np 4 with --num_gpus=1"}}) {
    Flags all{"--model=trivial", "--batch_size=2"};
    all.insert(all.end(), flags.begin(), flags.end());
    const Finished run = run_ranks(2, all);
    EXPECT_NE(run.status, 0);
    EXPECT_EQ(times_in(run.err, why), 1U) << run.err;
  }
}

TEST_F(RankModes, GoOnWithAnotherNumberOfRanksAndSayIt) {
  const TemporaryFolder folder;
  const auto go_on = [&](int processes, const Flags& more) {
    Flags flags{"--variable_update=replicated", "--num_warmup_batches=0"};
    flags.insert(flags.end(), more.begin(), more.end());
    return run_as(processes, rank_flags(folder.path().string(), flags));
  };
  const std::string notice =
      "model.ckpt-3.safetensors was trained by 2 ranks until here and goes "
      "on with 4 ranks: data go on at example 3 x 8";
  EXPECT_EQ(go_on(2, {}).status, 0);
  const Finished four = go_on(2, {"--num_gpus=2", "--num_batches=4"});
  EXPECT_EQ(four.status, 0) << four.err;
  EXPECT_EQ(times_in(four.err, notice), 1U) << four.err;
  EXPECT_EQ(times_in(four.err, "goes on with"), 1U) << four.err;
  const Finished same = go_on(1, {"--num_gpus=4", "--num_batches=5"});
  EXPECT_EQ(same.status, 0) << same.err;
  EXPECT_EQ(times_in(same.err, "goes on with"), 0U) << same.err;
}

}  // namespace
}  // namespace cnn::tests
