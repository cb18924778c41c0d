#include <filesystem>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <string>
#include <vector>

#include "tests/program/program.h"

namespace cnn::tests {
namespace {

using testing::HasSubstr;

// Copies the program alone into a folder, where a test can place another GPU backend next to it.
class GpuModule : public testing::Test {
 protected:
  void SetUp() override {
    std::filesystem::copy_file(CNN_PROGRAM, folder / "cnn_benchmarks");
    const Finished version = run({"--version"});
    ASSERT_EQ(version.status, 0) << version.err;
    if (version.out.find("gpu backend: not in this build") == std::string::npos) {
      GTEST_SKIP() << "the program contains its GPU backend";
    }
  }

  Finished run(std::vector<std::string> flags) const {
    flags.insert(flags.begin(), folder / "cnn_benchmarks");
    return run_and(
        flags, [](const Finished&) { return false; }, [] {});
  }
  Finished simulate() const {
    return run({"--simulate=h200", "--model=trivial", "--batch_size=2"});
  }

  TemporaryFolder folder;
};

TEST_F(GpuModule, IsNotNeededToPlanForAGpu) {
  const Finished finished = simulate();
  EXPECT_EQ(finished.status, 0) << finished.err;
  EXPECT_THAT(finished.err + finished.out, HasSubstr("this build has no cuDNN to ask"));
}

TEST_F(GpuModule, IsMissedWhereAGpuIsAskedFor) {
  const Finished finished = run({"--device=gpu"});
  EXPECT_EQ(finished.status, 1);
  EXPECT_EQ(finished.err, "--device=gpu: this build has no CUDA backend; use --device=cpu\n");
}

TEST_F(GpuModule, IsNamedWithTheReasonIfItCannotBeLoaded) {
  folder.write("cnn_gpu.so", "no library");
  const Finished finished = simulate();
  EXPECT_EQ(finished.status, 1);
  EXPECT_THAT(finished.err, HasSubstr("the GPU backend cannot be loaded: "));
  EXPECT_THAT(finished.err, HasSubstr(folder / "cnn_gpu.so"));
  EXPECT_THAT(finished.err, HasSubstr("are the CUDA libraries and cuDNN 9 that the program"));
}

TEST_F(GpuModule, IsRefusedWithARemedyIfItBelongsToAnotherProgram) {
  // Any machine that runs the program has this shared library, and it lacks the module's entry
  // function.
  std::string library;
  for (const char* place : {"/lib/x86_64-linux-gnu/libm.so.6", "/lib64/libm.so.6",
                            "/usr/lib/libm.so.6", "/lib/aarch64-linux-gnu/libm.so.6"}) {
    library = std::filesystem::exists(place) ? place : library;
  }
  if (library.empty()) {
    GTEST_SKIP() << "no library found to replace it with";
  }
  std::filesystem::copy_file(library, folder / "cnn_gpu.so");
  const Finished finished = simulate();
  EXPECT_EQ(finished.status, 1);
  EXPECT_THAT(finished.err, HasSubstr((folder / "cnn_gpu.so") +
                                      " is not the GPU backend of this program; put the one of "
                                      "its build there, or remove the file"));
}

TEST_F(GpuModule, LeavesTheProcessorToComputeIfItIsBroken) {
  folder.write("cnn_gpu.so", "no library");
  const Finished version = run({"--version"});
  EXPECT_EQ(version.status, 0) << version.err;
  EXPECT_THAT(version.out, HasSubstr("gpu backend: no CUDA device: "));
  const Finished finished = run({"--device=gpu"});
  EXPECT_EQ(finished.status, 1);
  EXPECT_THAT(finished.err, testing::StartsWith("--device=gpu: no CUDA device: "));
  EXPECT_THAT(finished.err, testing::EndsWith("; use --device=cpu\n"));
}

TEST_F(GpuModule, IsNoFolderOfItsName) {
  std::filesystem::create_directory(folder / "cnn_gpu.so");
  EXPECT_THAT(run({"--version"}).out, HasSubstr("gpu backend: not in this build"));
}

}  // namespace
}  // namespace cnn::tests
