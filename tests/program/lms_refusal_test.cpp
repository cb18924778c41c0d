// Tests the single line in which --lms says before the first step that it cannot do what the user
// asked.
#include <algorithm>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/program/lms_training.h"

namespace cnn::tests {
namespace {

using testing::HasSubstr;

struct Refusal {
  int status = 0;
  Words flags;
  std::vector<std::string> says;
};

void expect(const Refusal& refusal) {
  Words flags{"--lms"};
  flags.insert(flags.end(), refusal.flags.begin(), refusal.flags.end());
  const Finished run = run_program(lms_training(flags));
  EXPECT_EQ(run.status, refusal.status) << run.err;
  EXPECT_TRUE(run.step_lines().empty());
  for (const std::string& text : refusal.says) {
    EXPECT_THAT(run.err, HasSubstr(text)) << flags.back();
  }
}

TEST(LmsRefusal, NamesNeedLargestOpAndHelpIfTheBudgetIsBelowTheFloor) {
  for (const char* budget : {"--lms_limit=8", "--device_memory_mb=8"}) {
    expect({.status = 3,
            .flags = {budget},
            .says = {"OOM when allocating tensor with shape[64,", "as possible a step needs ",
                     " of that for variables; batch_norm#", " alone takes ",
                     "8.00 MiB (8388608 bytes) are there",
                     "use a smaller --batch_size or --image_size"}});
  }
}

TEST(LmsRefusal, NamesTheFlagsThatLetLessLeave) {
  expect({.status = 3,
          .flags = {"--device_memory_mb=40", "--lms_recompute=off", "--lms_n_tensors=0"},
          .says = {"or leave out --lms_n_tensors=0, --lms_recompute=off, which let less leave "
                   "the device; tensors of fewer than 16 KB stay: a smaller --lms_size_threshold "
                   "lets more leave"}});
}

TEST(LmsRefusal, NamesSlicesWhereTheyMayNeedLess) {
  expect({.status = 3,
          .flags = {"--model=alexnet", "--lms_limit=8"},
          .says = {"; --lms_slices=8 may need less: it computes the batch in slices"}});
  expect({.status = 3,
          .flags = {"--model=alexnet", "--lms_limit=8", "--lms_slices=32"},
          .says = {"; --lms_slices=64 may need less"}});
  const Finished resnet = run_program(lms_training({"--lms", "--lms_limit=8"}));
  EXPECT_EQ(resnet.err.find("--lms_slices"), std::string::npos) << resnet.err;
}

TEST(LmsRefusal, NamesTheSlicesAndTheExamplesWhereSlicesAreMore) {
  expect({.status = 1,
          .flags = {"--model=alexnet", "--lms_slices=65"},
          .says = {"--lms_slices=65: a batch of 64 has no more slices than that"}});
}

TEST(LmsRefusal, NamesTheFlagThatSetsTheBudget) {
  expect({.status = 3, .flags = {"--lms_limit=8"}, .says = {"are there (--lms_limit=8)"}});
  expect({.status = 3,
          .flags = {"--device_memory_mb=60", "--lms_exclude=52", "--lms_limit=9"},
          .says = {", less --lms_exclude=52)"}});
}

TEST(Lms, SaysThatALimitBeyondTheDeviceDoesNotAct) {
  const Finished run =
      run_program(lms_training({"--lms", "--device_memory_mb=60", "--lms_limit=100"}));
  EXPECT_EQ(run.status, 0) << run.err;
  EXPECT_THAT(run.err, HasSubstr("[LMS][0] --lms_limit=100 does not act: 60 MiB are there ("));
}

TEST(Lms, SimulatesTflms2InTheShareThatTheOriginalsVariableNames) {
  const Environment share("TF_LMS_SIMULATOR_MEM_RATIO", "0.8");
  const Words flags{"--lms", "--device_memory_mb=60", "--lms_policy=tflms2"};
  EXPECT_THAT(run_program(lms_training(flags)).err, HasSubstr("GiB (memory ratio: 0.8)"));
  Words with_flag = flags;
  with_flag.emplace_back("--lms_mem_ratio=0.9");
  EXPECT_THAT(run_program(lms_training(with_flag)).err, HasSubstr("GiB (memory ratio: 0.9)"));
  const Environment much("TF_LMS_SIMULATOR_MEM_RATIO", "80%");
  const Finished refused = run_program(lms_training(flags));
  EXPECT_EQ(refused.status, 1);
  EXPECT_THAT(refused.err, HasSubstr("TF_LMS_SIMULATOR_MEM_RATIO=80% is no share of memory"));
}

TEST(LmsRefusal, IsTheSameIfTheBudgetIsBelowTheVariables) {
  expect({.status = 3,
          .flags = {"--lms_limit=1"},
          .says = {"as possible a step needs ", " of that for variables"}});
}

TEST(LmsRefusal, NamesTheFlagOfANegativeOrZeroBudget) {
  expect({.status = 1, .flags = {"--lms_limit=-5"}, .says = {"--lms_limit"}});
  expect({.status = 1, .flags = {"--device_memory_mb=0"}, .says = {"--device_memory_mb"}});
  expect({.status = 1, .flags = {"--lms_limit=much"}, .says = {"--lms_limit"}});
  expect({.status = 1, .flags = {"--lms_mem_ratio=0"}, .says = {"--lms_mem_ratio"}});
  expect({.status = 1,
          .flags = {"--device_memory_mb=60", "--lms_exclude=60"},
          .says = {"--lms_exclude=60 leaves nothing of the device's 60 MiB"}});
}

TEST(LmsRefusal, NamesBothSizesIfTheHostPoolIsTooSmall) {
  expect({.status = 3,
          .flags = {"--device_memory_mb=60", "--lms_policy=tflms1", "--lms_host_limit=2"},
          .says = {"the plan of tflms1 moves ", "has 2.00 MiB (2097152 bytes) for it",
                   "raise --lms_host_limit"}});
  const Environment limit("TF_GPU_HOST_MEM_LIMIT_IN_MB", "3");
  expect({.status = 3,
          .flags = {"--device_memory_mb=60", "--lms_policy=tflms1"},
          .says = {"has 3.00 MiB (3145728 bytes) for it"}});
}

TEST(LmsRefusal, NamesTheFlagThatMakesADeviceIfACpuHasNone) {
  expect({.status = 3,
          .flags = {"--lms_limit=60", "--lms_policy=tflms1"},
          .says = {"the plan of tflms1 moves ", "a CPU computes in the host's memory",
                   "--device_memory_mb plays a device"}});
}

TEST(LmsRefusal, SuggestsOurPoliciesInsteadOfForeignOnes) {
  expect({.status = 3,
          .flags = {"--device_memory_mb=25", "--lms_policy=recompute"},
          .says = {"the policy recompute needs", "--lms_policy=planned may need less"}});
}

TEST(LmsRefusal, IsNotNeededWhereLmsIsNot) {
  const LmsRun off = lms_train({});
  const LmsRun on = lms_train({"--lms"});
  EXPECT_THAT(on.run.err, HasSubstr("[LMS][0] LMS is not necessary. Turned LMS off."));
  EXPECT_EQ(losses(on.result), losses(off.result));
  EXPECT_EQ(on.result.at("plan").at("arena_bytes"), off.result.at("plan").at("arena_bytes"));
  EXPECT_EQ(on.result.at("plan").at("lms").at("swapped_in_bytes"), 0);
  EXPECT_EQ(on.result.at("plan").at("lms").at("recomputed_nodes"), 0);
}

}  // namespace
}  // namespace cnn::tests
