#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <regex>

#include "tests/program/program.h"

namespace cnn::tests {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

TEST(Listing, AnswersVersionWithCommitAndLibraries) {
  const Finished run = run_program({"--version"});
  EXPECT_EQ(run.status, 0) << run.err;
  ASSERT_GE(run.lines().size(), 4U) << run.out;
  EXPECT_TRUE(std::regex_match(run.lines()[0], std::regex(R"(cnn_benchmarks \d+\.\d+\.\d+)")));
  EXPECT_TRUE(
      std::regex_match(run.lines()[1], std::regex("commit: ([0-9a-f]{40}(-dirty)?|unknown)")));
  EXPECT_THAT(run.out, AllOf(HasSubstr("\ngpu backend: "), HasSubstr("\ncpu backend: ")));
}

TEST(Listing, NamesModelsWithTheirSizesAndParameters) {
  const Finished run = run_program({"--list_models"});
  EXPECT_EQ(run.status, 0) << run.err;
  EXPECT_TRUE(std::regex_search(run.out, std::regex(R"(\nresnet50 +imagenet +224 +64 +25\d{6}\n)")))
      << run.out;
  EXPECT_TRUE(std::regex_search(run.out, std::regex(R"(\nlenet +mnist +28 +\d+ +1663370\n)")))
      << run.out;
  EXPECT_GT(run.lines().size(), 30U);
}

TEST(Listing, OfOneDataSetNamesItsModelsOnly) {
  const Finished run = run_program({"--list_models", "--data_name=cifar10"});
  EXPECT_EQ(run.status, 0) << run.err;
  EXPECT_THAT(run.out, AllOf(HasSubstr("\nresnet20 "), Not(HasSubstr("imagenet"))));
  EXPECT_EQ(run_program({"--list_models", "--data_name=tensors"}).status, 1);
}

TEST(Listing, OfHelpEndsWithExitCodesAndEnvironmentVariables) {
  const Finished run = run_program({"--help"});
  EXPECT_EQ(run.status, 1) << "as the original's";
  for (const char* part : {"Exit status:", "\n  0 ", "\n  1 ", "\n  3 ", "\n  75 ", "\n  128+N ",
                           "Environment variables:"}) {
    EXPECT_THAT(run.out, HasSubstr(part));
  }
  // All that the sources ask for by name.
  for (const char* name :
       {"CNN_MAX_CPU_ISA", "ONEDNN_MAX_CPU_ISA", "OMP_NUM_THREADS", "OMP_PROC_BIND", "OMP_PLACES",
        "GOMP_CPU_AFFINITY", "DDL_OPTIONS", "HOROVOD_", "TF_GPU_HOST_MEM_LIMIT_IN_MB",
        "OMPI_COMM_WORLD_RANK", "PMI_RANK", "MV2_COMM_WORLD_RANK", "PMIX_RANK"}) {
    EXPECT_THAT(run.out, HasSubstr(name));
  }
}

}  // namespace
}  // namespace cnn::tests
