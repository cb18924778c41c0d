#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <string>
#include <vector>

#include "tests/program/program.h"

namespace cnn::tests {
namespace {

// Runs a step that does not fit the 2 GiB of an emulated device.
Finished run_too_large(const std::vector<std::string>& more) {
  const Environment driver("LD_LIBRARY_PATH", CNN_EMULATED_FOLDER);
  std::vector<std::string> flags{"--device=gpu", "--data_name=cifar10", "--model=trivial",
                                 "--batch_size=400000", "--num_batches=1"};
  flags.insert(flags.end(), more.begin(), more.end());
  return run_program(flags);
}

TEST(EmulatedGpuMemory, IsKeptBackForWhatTheLibrariesLoad) {
  const Finished run = run_too_large({});
  EXPECT_EQ(run.status, 3);
  EXPECT_THAT(run.err, testing::HasSubstr("but 1.25 GiB are free"));
}

TEST(EmulatedGpuMemory, IsTakenUpToTheFractionThatIsAskedFor) {
  const Finished run = run_too_large({"--gpu_memory_frac_for_testing=0.25"});
  EXPECT_EQ(run.status, 3);
  EXPECT_THAT(run.err, testing::HasSubstr("but 512.00 MiB are free"));
}

}  // namespace
}  // namespace cnn::tests
