#include <filesystem>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <regex>
#include <string>
#include <vector>

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

TEST(Listing, AnswersVersionForEachProgram) {
  const std::vector<std::string> wanted = run_program({"--version"}).lines();
  ASSERT_GE(wanted.size(), 4U);
  for (const std::string name : {"all_reduce_benchmark", "cnn_compare"}) {
    const auto path = std::filesystem::path(CNN_PROGRAM).parent_path() / name;
    const Finished run = run_and(
        {path.string(), "--version"}, [](const Finished&) { return false; }, [] {});
    EXPECT_EQ(run.status, 0) << run.err;
    std::vector<std::string> lines = run.lines();
    ASSERT_GE(lines.size(), 2U) << run.out;
    EXPECT_EQ(lines[0], name + wanted[0].substr(wanted[0].find(' ')));
    EXPECT_EQ(lines[1], wanted[1]);
    if (name == "all_reduce_benchmark") {  // it uses the same libraries
      lines[0] = wanted[0];
      EXPECT_EQ(lines, wanted);
    }
  }
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

TEST(Listing, NamesOnlyTheModelsOfADataSet) {
  const Finished run = run_program({"--list_models", "--data_name=cifar10"});
  EXPECT_EQ(run.status, 0) << run.err;
  EXPECT_THAT(run.out, AllOf(HasSubstr("\nresnet20 "), Not(HasSubstr("imagenet"))));
  EXPECT_EQ(run_program({"--list_models", "--data_name=tensors"}).status, 1);
}

TEST(Listing, NamesExitCodesInHelpAndEnvironmentVariablesInFullHelp) {
  const Finished usual = run_program({"--help"});
  const Finished run = run_program({"--helpfull"});
  EXPECT_EQ(usual.status, 1) << "the original exits with 1 too";
  EXPECT_EQ(run.status, 1);
  for (const char* part :
       {"Exit status:", "\n  0 ", "\n  1 ", "\n  3 ", "\n  4 ", "\n  75 ", "\n  128+N "}) {
    EXPECT_THAT(run.out, HasSubstr(part));
    EXPECT_THAT(usual.out, HasSubstr(part));
  }
  // These are all variables that the sources read by name.
  for (const char* name :
       {"Environment variables:", "CNN_MAX_CPU_ISA", "ONEDNN_MAX_CPU_ISA", "OMP_NUM_THREADS",
        "OMP_PROC_BIND", "OMP_PLACES", "GOMP_CPU_AFFINITY", "DDL_OPTIONS", "HOROVOD_",
        "TF_GPU_HOST_MEM_LIMIT_IN_MB", "TF_LMS_SIMULATOR_MEM_RATIO", "OMPI_COMM_WORLD_RANK",
        "PMI_RANK", "MV2_COMM_WORLD_RANK", "PMIX_RANK", "SLURM_STEP_NUM_TASKS"}) {
    EXPECT_THAT(run.out, HasSubstr(name));
  }
}

TEST(Listing, ReportsAnUnknownTopicOfHelp) {
  const Finished run = run_program({"--help=lmss"});
  EXPECT_EQ(run.status, 1);
  EXPECT_EQ(run.out, "");
  EXPECT_THAT(run.err, HasSubstr("--help=lmss: no flag mentions it"));
  EXPECT_THAT(run.err, HasSubstr("did you mean lms?"));
}

// Returns bash's completions of the line, joined by bars, with the script that the program prints.
std::string completed(const std::string& line) {
  const std::string script = "source <(" CNN_PROGRAM " --help_format=bash); COMP_LINE='" + line +
                             "' COMP_POINT=" + std::to_string(line.size()) +
                             "; _cnn_benchmarks; printf '%s|' \"${COMPREPLY[@]}\"";
  return run_and(
             {"/bin/bash", "-c", script}, [](const Finished&) { return false; }, [] {})
      .out;
}

TEST(Listing, CompletesFlagsAndValues) {
  EXPECT_EQ(completed("cnn_benchmarks --batch"), "--batch_size=|--batch_group_size=|");
  EXPECT_EQ(completed("cnn_benchmarks --model=resnet152"), "resnet152 |resnet152_v2 |");
  EXPECT_EQ(completed("cnn_benchmarks --eval --optimizer=m"), "momentum |");
  EXPECT_EQ(completed("cnn_benchmarks --nodrop"), "--nodropout |");
}

}  // namespace
}  // namespace cnn::tests
