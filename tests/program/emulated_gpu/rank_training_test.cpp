// Tests trainings on two emulated GPUs that exchange by NCCL, as threads of one process and as two
// processes. They cover evaluation during training, checkpoints, resuming and LMS.

#include <cstdint>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "tests/program/emulated_gpu/emulated_program.h"
#include "tests/program/ranks.h"
#include "tests/support/files.h"

namespace cnn::tests {
namespace {

using testing::AllOf;
using testing::HasSubstr;

enum class Ranks : std::uint8_t { threads, processes };

struct RankTraining {
  Finished run;
  std::vector<double> base;  // losses without weight decay, one per step
  nlohmann::json result;
};

// Runs the unchanged program on two devices of one process, or as two processes of mpirun with one
// device each.
class NcclTraining : public testing::TestWithParam<Ranks> {
 protected:
  void SetUp() override {
    if (GetParam() == Ranks::processes) {
      if (const std::string why = why_no_ranks(); !why.empty()) {
        GTEST_SKIP() << why;
      }
    }
  }

  // Runs the training and expects that all ranks end with code 0.
  static RankTraining train_ranks(const Words& flags) {
    const TemporaryFolder folder;
    const std::string file = folder / "result.json";
    const Words common =
        small_resnet({"--device=gpu", "--comm_backend=nccl", "--notune", "--num_warmup_batches=0",
                      "--display_every=1", "--tf_random_seed=7", "--nomeasure_ceilings",
                      "--comm_calibrate=off", "--result_json=" + file});
    const bool threads = GetParam() == Ranks::threads;
    const Words all =
        with(with(common, flags), threads ? Words{"--num_gpus=2", "--variable_update=replicated"}
                                          : Words{"--variable_update=horovod"});
    RankTraining training{.run = threads ? run_program(all) : run_ranks(2, all)};
    EXPECT_EQ(training.run.status, 0) << training.run.err << training.run.out;
    if (training.run.status == 0) {
      training.result = nlohmann::json::parse(read_file(file));
      for (const auto& step : training.result.at("steps")) {
        training.base.push_back(step.at("base_loss").get<double>());
      }
    }
    return training;
  }

 private:
  const Environment devices_{"CNN_EMULATED_DEVICES", "2"};
  const Environment libraries_{"LD_LIBRARY_PATH", CNN_EMULATED_FOLDER};
  const Environment watchdog_{"MPIEXEC_TIMEOUT", "300"};
  const Environment network_{"OMPI_MCA_btl", "self,vader"};
};

void expect_equal_files(const std::string& a, const std::string& b) {
  EXPECT_GT(read_file(a).size(), 1'000'000U) << a;
  EXPECT_TRUE(read_file(a) == read_file(b)) << a << " and " << b << " differ";
}

TEST_P(NcclTraining, EndsWithTheSameBitsWhenItIsResumed) {
  const TemporaryFolder folder;
  const Words flags{"--precision=fp16", "--fp16_enable_auto_loss_scale",
                    "--fp16_inc_loss_scale_every_n=2"};
  const RankTraining whole =
      train_ranks(with(flags, {"--num_batches=4", "--train_dir=" + (folder / "whole")}));
  for (const char* batches : {"--num_batches=2", "--num_batches=4"}) {
    train_ranks(with(flags, {batches, "--train_dir=" + (folder / "parts")}));
  }
  EXPECT_EQ(whole.base.size(), 4U);
  expect_equal_files(folder / "whole/model.ckpt-4.safetensors",
                     folder / "parts/model.ckpt-4.safetensors");
}

TEST_P(NcclTraining, TrainsWithTheSameBitsWhenItEvaluatesOnTheWay) {
  const TemporaryFolder folder;
  const Words flags{"--num_batches=4", "--precision=bf16", "--save_model_steps=2"};
  const RankTraining plain = train_ranks(with(flags, {"--train_dir=" + (folder / "plain")}));
  const RankTraining evaluated =
      train_ranks(with(flags, {"--train_dir=" + (folder / "evaluated"), "--num_eval_batches=2",
                               "--eval_during_training_every_n_steps=2"}));
  EXPECT_EQ(plain.base.size(), 4U);
  EXPECT_EQ(plain.base, evaluated.base);
  EXPECT_THAT(evaluated.run.out,
              AllOf(HasSubstr("Running evaluation at global_step 2"), HasSubstr("Accuracy @ 1 = "),
                    HasSubstr("Running final evaluation at global_step 4")));
  for (const std::string file : {"/model.ckpt-2.safetensors", "/model.ckpt-4.safetensors"}) {
    expect_equal_files(folder / "plain" + file, folder / "evaluated" + file);
  }
}

// The budget is that of one device. Both ranks follow rank 0's plan, which the program makes again
// from measured times after the warm-up.
TEST_P(NcclTraining, TrainsWithTheSameBitsWhenItSwapsTensors) {
  const Words flags{"--batch_size=8", "--num_batches=2", "--num_warmup_batches=2",
                    "--precision=fp16"};
  const RankTraining whole = train_ranks(flags);
  const RankTraining swapped = train_ranks(
      with(flags, {"--lms", "--lms_size_threshold=16", "--lms_limit=35", "--lms_verify"}));
  EXPECT_EQ(whole.base.size(), 2U);
  EXPECT_EQ(swapped.base, whole.base);
  ASSERT_FALSE(swapped.result.is_null());
  const nlohmann::json& lms = swapped.result.at("plan").at("lms");
  EXPECT_GT(lms.at("swapped_tensors").get<int>() + lms.at("recomputed_nodes").get<int>(), 0)
      << swapped.run.err;
}

std::string kind_of_ranks(const testing::TestParamInfo<Ranks>& info) {
  return info.param == Ranks::threads ? "TwoThreads" : "TwoProcesses";
}

INSTANTIATE_TEST_SUITE_P(Quick, NcclTraining, testing::Values(Ranks::threads), kind_of_ranks);
INSTANTIATE_TEST_SUITE_P(Slow, NcclTraining, testing::Values(Ranks::processes), kind_of_ranks);

}  // namespace
}  // namespace cnn::tests
