// Engines of cuDNN that are timed on the emulated GPU, and the cache that keeps the choice.

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <string>

#include "tests/program/emulated_gpu/emulated_program.h"
#include "tests/support/files.h"

namespace cnn::tests {
namespace {

using testing::AllOf;
using testing::HasSubstr;

TEST(EmulatedGpuTuning, IsReadFromTheCacheByALaterRun) {
  const TemporaryFolder folder;
  const Words flags =
      small_resnet({"--num_batches=2", "--precision=fp16", "--plan_cache=" + (folder / "plans")});
  const Training tuned = train("gpu", with(flags, {"--tune"}));
  const std::string kept = read_file(folder / "plans");
  EXPECT_THAT(kept, HasSubstr("forward f16 x 2x16x16x16"));
  EXPECT_FALSE(tuned.base.empty());
  const Training again = train("gpu", with(flags, {"--tune"}));
  EXPECT_EQ(again.base, tuned.base);
  EXPECT_TRUE(read_file(folder / "plans") == kept) << "nothing is timed again";
  EXPECT_EQ(train("gpu", flags).base, tuned.base);
}

// The cache of a user serves all runs, which may end at the same moment.
TEST(EmulatedGpuTuning, OfTwoProcessesAtOnceIsKeptWhole) {
  const TemporaryFolder folder;
  const Environment driver("LD_LIBRARY_PATH", CNN_EMULATED_FOLDER);
  const std::string plans = folder / "plans";
  const std::string one = std::string(CNN_PROGRAM) +
                          " --device=gpu --nomeasure_ceilings --num_warmup_batches=0 "
                          "--num_batches=1 --data_name=cifar10 --model=resnet20 --image_size=16 "
                          "--precision=fp16 --tune --plan_cache=" +
                          plans + " --batch_size=";
  for (int round = 1; round <= 2; ++round) {
    const int first = 2 * round;
    const std::string command = one + std::to_string(first) + " & a=$!; " + one +
                                std::to_string(first + 1) + " & b=$!; wait $a && wait $b";
    const Finished both = run_and(
        {"/bin/sh", "-c", command}, [](const Finished&) { return false; }, [] {});
    ASSERT_EQ(both.status, 0) << both.err;
  }
  const std::string kept = read_file(plans);
  EXPECT_THAT(kept, AllOf(HasSubstr("x 2x16x16x16 "), HasSubstr("x 3x16x16x16 "),
                          HasSubstr("x 4x16x16x16 "), HasSubstr("x 5x16x16x16 ")));
}

}  // namespace
}  // namespace cnn::tests
