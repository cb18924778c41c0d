// Checks that LMS on the emulated GPU, whose copies run on streams beside the kernels, changes no
// bit of a training.

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <string>

#include "tests/program/emulated_gpu/emulated_program.h"
#include "tests/support/files.h"

namespace cnn::tests {
namespace {

using testing::HasSubstr;

Words flags_of(const Words& more) {
  return small_resnet(with({"--batch_size=8", "--num_batches=2", "--precision=fp16"}, more));
}

// Returns a training whose step needs 35.7 MiB, of which cuBLASLt's workspace takes 32.
const Training& without_lms() {
  static const Training training = train("gpu", flags_of({}));
  return training;
}

void expect_equal_bits(const Training& swapped, const Training& whole) {
  EXPECT_FALSE(whole.base.empty());
  EXPECT_EQ(swapped.base, whole.base);
  ASSERT_FALSE(swapped.result.empty());
  EXPECT_GT(
      swapped.number("/plan/lms/swapped_tensors") + swapped.number("/plan/lms/recomputed_nodes"), 0)
      << swapped.run.err;
}

class EmulatedGpuLms : public testing::TestWithParam<std::string> {};

TEST_P(EmulatedGpuLms, SwapsTensorsAndKeepsEveryBit) {
  expect_equal_bits(
      train("gpu", flags_of({"--lms", "--lms_policy=" + GetParam(), "--lms_size_threshold=16",
                             "--lms_limit=35", "--lms_verify"})),
      without_lms());
}

TEST(SlowEmulatedGpuLms, SwapsTensorsByParametersOfTflms2AndKeepsEveryBit) {
  expect_equal_bits(
      train("gpu", flags_of({"--lms", "--lms_policy=tflms2", "--lms_swapout_threshold=5",
                             "--lms_swapin_ahead=2", "--lms_swapin_groupby=0", "--lms_limit=35",
                             "--lms_size_threshold=16", "--lms_verify"})),
      without_lms());
}

// vdnn_conv keeps too many tensors for the other policies' budget.
TEST(SlowEmulatedGpuLms, SwapsTensorsByVdnnConvAndKeepsEveryBit) {
  const Words flags = flags_of({"--batch_size=16"});
  expect_equal_bits(train("gpu", with(flags, {"--lms", "--lms_policy=vdnn_conv", "--lms_limit=36",
                                              "--lms_size_threshold=16", "--lms_verify"})),
                    train("gpu", flags));
}

std::string policy_name(const testing::TestParamInfo<std::string>& info) { return info.param; }

INSTANTIATE_TEST_SUITE_P(Quick, EmulatedGpuLms,
                         testing::Values("planned", "vdnn_all", "capuchin", "recompute"),
                         policy_name);
INSTANTIATE_TEST_SUITE_P(Slow, EmulatedGpuLms,
                         testing::Values("tflms1", "tflms2", "caffe", "reclaim", "vdnn_dynamic",
                                         "dtr", "superneurons", "window"),
                         policy_name);

// The sums of batch norms take another order in slices, so the losses are near those of the whole
// batch; a limit changes no bit of them.
TEST(EmulatedGpuLmsSlices, TrainThroughBatchNorms) {
  const Words flags = flags_of({"--lms", "--lms_slices=4", "--lms_size_threshold=4"});
  const Training sliced = train("gpu", flags);
  ASSERT_EQ(sliced.base.size(), without_lms().base.size());
  for (std::size_t step = 0; step < sliced.base.size(); ++step) {
    EXPECT_NEAR(sliced.base[step], without_lms().base[step], 0.01) << step;
  }
  EXPECT_EQ(sliced.number("/plan/lms/swapped_tensors"), 0);
  expect_equal_bits(train("gpu", with(flags, {"--lms_limit=35", "--lms_verify"})), sliced);
}

TEST(EmulatedGpuLmsPlan, TellsHowLittleItMoved) {
  const Training run = train("gpu", flags_of({"--batch_size=4", "--lms", "--lms_policy=vdnn_all",
                                              "--lms_size_threshold=16", "--lms_limit=35"}));
  EXPECT_GT(run.number("/plan/lms/swapped_tensors"), 0);
  EXPECT_THAT(run.run.err,
              testing::ContainsRegex("moved out 0\\.[0-9][0-9] MiB, in 0\\.[0-9][0-9] MiB"));
}

TEST(EmulatedGpuLmsPlan, IsMadeAgainByMeasuredTimesAndKeepsEveryBit) {
  const Words warm = flags_of({"--num_warmup_batches=2"});
  const Training whole = train("gpu", warm);
  const Training swapped =
      train("gpu", with(warm, {"--lms", "--lms_size_threshold=16", "--lms_limit=35"}));
  EXPECT_THAT(swapped.run.err, HasSubstr("planned again by measured times"));
  EXPECT_FALSE(whole.base.empty());
  EXPECT_EQ(swapped.base, whole.base);
}

TEST(SlowEmulatedGpuLmsPlan, RunsAsItWasWrittenToAFile) {
  const TemporaryFolder folder;
  const Words flags = flags_of({"--lms", "--lms_size_threshold=16", "--lms_limit=35"});
  const Training planned = train("gpu", with(flags, {"--lms_plan_out=" + (folder / "plan.json")}));
  const Training read = train("gpu", with(flags, {"--lms_plan_file=" + (folder / "plan.json")}));
  EXPECT_EQ(planned.base, without_lms().base);
  EXPECT_EQ(read.base, planned.base);
  EXPECT_EQ(read.number("/plan/lms/swapped_tensors"), planned.number("/plan/lms/swapped_tensors"));
}

// Host functions of a stream read and write the file, between copies of the other streams.
TEST(EmulatedGpuLmsDisk, TakesWhatTheHostHasNoRoomForAndKeepsEveryBit) {
  const TemporaryFolder folder;
  const Words flags = flags_of({"--batch_size=32", "--num_batches=3"});
  const Training whole = train("gpu", flags);
  const Training less = train(
      "gpu",
      with(flags, {"--lms", "--lms_size_threshold=16", "--lms_limit=37", "--lms_recompute=off",
                   "--lms_host_limit=2", "--lms_disk=" + folder.path().string()}));
  expect_equal_bits(less, whole);
  EXPECT_GT(less.number("/plan/lms/disk/swapped_tensors"), 0) << less.run.err;
  EXPECT_THAT(folder.names(), testing::IsEmpty());
}

}  // namespace
}  // namespace cnn::tests
