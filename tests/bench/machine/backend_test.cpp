#include "bench/machine/backend.h"

#include <array>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "runtime/error.h"
#include "tests/support/files.h"

namespace cnn::bench {
namespace {

Backend make_named(const Config& config) {
  return Backend{.name = "made for " + std::string(word_of(config.precision.type))};
}

std::string broken() { return "no CUDA device: broken"; }

std::string refusal(DeviceKind device, std::span<const BackendKind> kinds) {
  Config config;
  config.device = device;
  try {
    make_backend(config, kinds);
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

TEST(Backend, IsOfTheKindThatTheFlagNames) {
  const std::array<BackendKind, 2> kinds{BackendKind{.device = "cpu"},
                                         BackendKind{.device = "gpu", .make = make_named}};
  Config config;
  config.device = DeviceKind::gpu;
  config.precision.type = Precision::fp16;
  EXPECT_EQ(make_backend(config, kinds).name, "made for fp16");
  EXPECT_EQ(find_backend(kinds, "gpu"), &kinds[1]);
  EXPECT_EQ(find_backend(kinds, "tpu"), nullptr);
}

TEST(Backend, IsRefusedWithTheReasonWhereThereIsNone) {
  const std::array<BackendKind, 1> kinds{
      BackendKind{.device = "gpu", .missing = broken, .make = make_named}};
  EXPECT_EQ(refusal(DeviceKind::gpu, kinds), "--device=gpu: no CUDA device: broken");
  EXPECT_EQ(refusal(DeviceKind::cpu, kinds), "--device=cpu: this build has no backend for cpu");
}

TEST(Backend, WaitsForEachKernelOfAGpuIfAFlagAsksForIt) {
  Config config{.device = DeviceKind::gpu};
  EXPECT_FALSE(step_options(config).wait_for_each);
  config.gpu.sync_each_kernel = true;
  const StepOptions waiting = step_options(config);
  EXPECT_TRUE(waiting.wait_for_each);
  EXPECT_THAT(step_notes(waiting), testing::ElementsAre(testing::StartsWith("--sync_each_kernel")));
  config.device = DeviceKind::cpu;
  EXPECT_FALSE(step_options(config).wait_for_each);
}

TEST(Backend, RecordsStepsUnlessAFlagForbidsIt) {
  Config config;
  EXPECT_TRUE(step_options(config).record);
  config.gpu.graph = false;
  EXPECT_FALSE(step_options(config).record);
}

Backend make_with_own_memory(const Config& /*config*/) {
  Backend backend;
  backend.memory.host = 1;
  return backend;
}

TEST(Backend, HasADiskOnlyBehindMemoryOfItsOwn) {
  const tests::TemporaryFolder folder;
  const std::array<BackendKind, 2> kinds{
      BackendKind{.device = "cpu", .make = make_named},
      BackendKind{.device = "gpu", .make = make_with_own_memory}};
  Config config;
  config.lms.disk = folder.path().string();
  config.device = DeviceKind::gpu;
  EXPECT_FALSE(make_backend(config, kinds).disk) << "without --lms";
  config.lms.enabled = true;
  const Backend backend = make_backend(config, kinds);
  ASSERT_TRUE(backend.disk);
  EXPECT_EQ(backend.disk->folder, folder.path());
  EXPECT_EQ(backend.notes.empty(), backend.disk->is_direct);
  config.device = DeviceKind::cpu;
  EXPECT_FALSE(make_backend(config, kinds).disk) << "the device computes in host memory";
}

}  // namespace
}  // namespace cnn::bench
