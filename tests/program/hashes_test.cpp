// Tests the hashes of all tensors of a step, which compare runs and let ranks check each other.
#include <filesystem>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <string>
#include <vector>

#include "tests/program/lms_training.h"
#include "tests/program/rank_training.h"

namespace cnn::tests {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

Words small_training(const Words& more) {
  Words words{"--device=cpu",         "--model=resnet20",
              "--data_name=cifar10",  "--batch_size=4",
              "--num_batches=3",      "--num_warmup_batches=1",
              "--display_every=1",    "--nomeasure_ceilings",
              "--optimizer=momentum", "--init_learning_rate=0.01"};
  words.insert(words.end(), more.begin(), more.end());
  return words;
}

// Two --hash_file files in one folder and the verdict of cnn_compare --bits.
class Bits {
 public:
  void train(const std::string& name, Words words) {
    words.push_back("--hash_file=" + path(name));
    const Finished run = run_program(words);
    EXPECT_EQ(run.status, 0) << run.err;
  }

  Finished compare(const std::string& a = "a", const std::string& b = "b") const {
    const std::filesystem::path folder = std::filesystem::path(CNN_PROGRAM).parent_path();
    return run_and(
        {(folder / "cnn_compare").string(), "--bits", path(a), path(b)},
        [](const Finished&) { return false; }, [] {});
  }

  std::string path(const std::string& name) const { return folder_ / name; }

 private:
  TemporaryFolder folder_;
};

TEST(TensorHashes, AreEqualForTwoRunsOfOneTraining) {
  Bits bits;
  bits.train("a", small_training({}));
  bits.train("b", small_training({}));
  const Finished found = bits.compare();
  EXPECT_EQ(found.status, 0) << found.out << found.err;
  EXPECT_THAT(found.out, AllOf(HasSubstr(" are equal bit by bit: "),
                               HasSubstr("tensors in each of 4 steps"), Not(HasSubstr("only"))));
}

TEST(TensorHashes, DifferFirstInTheFirstLayerForAnotherSeed) {
  Bits bits;
  bits.train("a", small_training({}));
  bits.train("b", small_training({"--tf_random_seed=7"}));
  const Finished found = bits.compare();
  EXPECT_EQ(found.status, 1) << found.out << found.err;
  EXPECT_THAT(found.out, AllOf(HasSubstr(" differ first in step 1, in "),
                               HasSubstr("note: --tf_random_seed: 1234 before, 7 now"),
                               HasSubstr("4 of 4 steps differ")));
}

TEST(TensorHashes, DifferFirstInTheFirstUpdateForAnotherLearningRate) {
  Bits bits;
  bits.train("a", small_training({}));
  bits.train("b", small_training({"--init_learning_rate=0.02"}));
  const Finished found = bits.compare();
  EXPECT_EQ(found.status, 1) << found.out << found.err;
  EXPECT_THAT(found.out, AllOf(HasSubstr(" differ first in step 1, in "), HasSubstr("op update"),
                               HasSubstr("differ in step 1: update ")));
}

TEST(TensorHashes, NameTheTensorInWhichABitWasFlipped) {
  Bits bits;
  bits.train("a", small_training({}));
  bits.train("b", small_training({"--comm_fault=rank=0,step=3,what=flip"}));
  bits.train("c", small_training({"--comm_fault=rank=0,step=2,what=flip,tensor=conv#1:0"}));
  const Finished middle = bits.compare("a", "b");
  EXPECT_EQ(middle.status, 1) << middle.out << middle.err;
  EXPECT_THAT(middle.out, HasSubstr("differ first in step 3, in "));
  EXPECT_THAT(
      bits.compare("a", "c").out,
      AllOf(HasSubstr("differ first in step 2, in conv#1:0: output 0 of node conv#1, op conv"),
            HasSubstr("of v/cg/conv0/conv2d/kernel")));
}

TEST(TensorHashes, AreEqualWithAndWithoutLms) {
  Bits bits;
  bits.train("a", lms_training({}));
  bits.train("b", lms_training({"--device_memory_mb=64", "--lms", "--lms_verify"}));
  const Finished found = bits.compare();
  EXPECT_EQ(found.status, 0) << found.out << found.err;
  EXPECT_THAT(found.out, HasSubstr(" are equal bit by bit: "));
}

TEST(TensorHashes, AreEqualOnADeviceWithItsOwnMemoryAndTheHost) {
  Bits bits;
  bits.train("a", small_training({}));
  bits.train("b", small_training({"--device_memory_mb=256"}));
  const Finished found = bits.compare();
  EXPECT_EQ(found.status, 0) << found.out << found.err;
}

TEST(TensorHashes, AreTakenOfEveryNthStepIfAsked) {
  Bits bits;
  bits.train("a", small_training({}));
  bits.train("b", small_training({"--hash_steps=2"}));
  const Finished found = bits.compare();
  EXPECT_EQ(found.status, 0) << found.out << found.err;
  EXPECT_THAT(found.out, HasSubstr("has 4 hashed steps"));
  EXPECT_THAT(found.out, HasSubstr("has 2; 2 were compared"));
}

TEST(TensorHashes, ChangeNothingThatIsComputed) {
  Bits bits;
  const auto final_step = [](const Finished& run) {
    const std::string line = run.step_lines().back();
    return line.substr(line.rfind('\t'));
  };
  const Finished with = run_program(small_training({"--hash_file=" + bits.path("a")}));
  const Finished without = run_program(small_training({}));
  ASSERT_EQ(with.status, 0) << with.err;
  ASSERT_EQ(without.status, 0) << without.err;
  EXPECT_EQ(final_step(with), final_step(without));
}

TEST(TensorHashes, AreNotComparedBetweenNetworks) {
  Bits bits;
  bits.train("a", small_training({}));
  bits.train("b", small_training({"--batch_size=2"}));
  const Finished found = bits.compare();
  EXPECT_EQ(found.status, 3) << found.out;
  EXPECT_THAT(found.err, HasSubstr("cannot be compared: --batch_size 4 and 2"));
  EXPECT_EQ(bits.compare("a", "missing").status, 3);
}

TEST(TensorHashes, RefuseAFileThatCannotBeWrittenAndATensorThatIsNotThere) {
  const Finished nowhere = run_program(small_training({"--hash_file=/proc/nowhere/h.txt"}));
  EXPECT_EQ(nowhere.status, 1);
  EXPECT_THAT(nowhere.err, HasSubstr("--hash_file=/proc/nowhere/h.txt: cannot write it"));
  const Finished unknown =
      run_program(small_training({"--comm_fault=rank=0,what=flip,tensor=conv#9999"}));
  EXPECT_EQ(unknown.status, 1);
  EXPECT_THAT(unknown.err, HasSubstr("the step writes no tensor conv#9999"));
}

Words watched_training(const Words& more) {
  Words words = small_training({"--variable_update=independent", "--comm_check=majority"});
  words.insert(words.end(), more.begin(), more.end());
  return words;
}

constexpr int ranks_differ = 4;  // the exit code

TEST(MajorityOfTowers, NamesTheOneThatComputesDifferently) {
  const Finished run = run_program(
      watched_training({"--num_gpus=3", "--comm_fault=rank=1,step=2,what=flip,tensor=conv#1:0"}));
  EXPECT_EQ(run.status, ranks_differ) << run.err;
  EXPECT_THAT(run.err, AllOf(HasSubstr("--comm_check=majority: rank 1 (host "),
                             HasSubstr("computes differently from the other 2 in global step 2, "
                                       "first in conv#1:0")));
}

TEST(MajorityOfTowers, IsUnanimousWhereNobodyIsWrong) {
  const Finished run = run_program(watched_training({"--num_gpus=3"}));
  EXPECT_EQ(run.status, 0) << run.err;
  EXPECT_EQ(run.step_lines().size(), 3U);
}

TEST(MajorityOfTowers, NeedsRanksThatTrainAlone) {
  const Finished one = run_program(watched_training({}));
  EXPECT_EQ(one.status, 1);
  EXPECT_THAT(one.err, HasSubstr("--comm_check=majority compares ranks, and this is one"));
  const Finished together =
      run_program(watched_training({"--num_gpus=3", "--variable_update=replicated"}));
  EXPECT_EQ(together.status, 1);
  EXPECT_THAT(together.err, HasSubstr("add --variable_update=independent"));
}

class MajorityOfRanks : public SeveralProcesses {};

TEST_F(MajorityOfRanks, NamesTheOneThatComputesDifferentlyAndAllEnd) {
  const Finished run = run_ranks(
      3,
      watched_training({"--comm_fault=rank=2,step=3,what=flip,tensor=v/cg/conv0/conv2d/kernel"}));
  const std::string line =
      "computes differently from the other 2 in global step 3, first in v/cg/conv0/conv2d/kernel "
      "(output ";
  EXPECT_THAT(run.err, AllOf(HasSubstr("--comm_check=majority: rank 2 (host "), HasSubstr(line)));
  EXPECT_EQ(run.err.find(line), run.err.rfind(line)) << "said once: " << run.err;
  const std::map<int, int> all{{0, ranks_differ}, {1, ranks_differ}, {2, ranks_differ}};
  EXPECT_EQ(codes_of(run), all) << run.err;
}

TEST_F(MajorityOfRanks, LacksAMajorityOfTwo) {
  const Finished run =
      run_ranks(2, watched_training({"--comm_fault=rank=1,step=2,what=flip,tensor=conv#1:0"}));
  EXPECT_THAT(run.err, AllOf(HasSubstr("ranks compute differently in global step 2, first in "
                                       "conv#1:0"),
                             HasSubstr("nobody can say which is wrong")));
  EXPECT_EQ(codes_of(run), (std::map<int, int>{{0, ranks_differ}, {1, ranks_differ}})) << run.err;
}

TEST_F(MajorityOfRanks, TrainsWhatOneRankAloneTrains) {
  Bits bits;
  const Finished ranks = run_ranks(3, watched_training({"--hash_file=" + bits.path("a")}));
  EXPECT_EQ(ranks.status, 0) << ranks.err;
  Words alone = small_training({"--num_intra_threads=1"});
  bits.train("b", alone);
  const Finished found = bits.compare();
  EXPECT_EQ(found.status, 0) << found.out << found.err;
}

}  // namespace
}  // namespace cnn::tests
