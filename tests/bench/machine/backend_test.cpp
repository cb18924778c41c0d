#include "bench/machine/backend.h"

#include <array>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "bench/machine/cpu_backend.h"
#include "bench/machine/machine_model.h"
#include "runtime/error.h"

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

Backend describe_named(const Config& /*config*/, const MachineModel& model) {
  return Backend{.name = "described for " + model.name};
}

TEST(Backend, IsDescribedWhereTheFlagsNameAMachine) {
  const std::array<BackendKind, 1> kinds{
      BackendKind{.device = "gpu", .missing = broken, .describe = describe_named}};
  Config config{.device = DeviceKind::gpu,
                .gpu = {.simulate = "h200"},
                .precision = {.type = Precision::bf16}};
  const Backend backend = make_backend(config, kinds);
  EXPECT_EQ(backend.name, "described for H200");
  EXPECT_EQ(backend.compute, DataType::bf16);
  EXPECT_EQ(backend.link->in, 50e9);
  EXPECT_EQ(backend.described->ceilings.flops_per_second, 790e12);
  EXPECT_EQ(backend.described->assumed, "");
}

TEST(Backend, IsAssumedWhereNoLibraryDescribesTheMachine) {
  const std::array<BackendKind, 1> kinds{
      BackendKind{.device = "gpu", .missing = broken, .describe = describe_named}};
  Config config{.device = DeviceKind::gpu, .gpu = {.simulate = "p100-pcie3"}};
  const Backend backend = make_backend(config, kinds);
  EXPECT_EQ(backend.name, "cuda");
  EXPECT_EQ(backend.precision, "f32");
  EXPECT_EQ(backend.memory.device, 16'320'875'724U);
  EXPECT_EQ(backend.memory.host, std::size_t{64} << 30U);
  EXPECT_THAT(backend.described->assumed, testing::StartsWith("cuDNN does not describe"));
  config.gpu.simulate = "h100";
  EXPECT_THAT(make_backend(config, {}).described->assumed,
              testing::StartsWith("this build has no cuDNN"));
  config.gpu.memory_fraction = 0.5;
  EXPECT_EQ(make_backend(config, {}).memory.device, 85'045'346'304U / 2);
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

TEST(CpuBackend, DescribesItself) {
  const std::array<BackendKind, 1> kinds{cpu_backend()};
  Config config;
  config.device = DeviceKind::cpu;
  config.cpu.intra_threads = 1;
  const Backend backend = make_backend(config, kinds);
  EXPECT_EQ(backend.name, "cpu");
  EXPECT_EQ(backend.processors.threads, 1);
  EXPECT_THAT(backend.description, testing::HasSubstr(", 1 threads, "));
  EXPECT_EQ(backend.compute, DataType::f32);
  EXPECT_EQ(backend.precision, "f32");
  EXPECT_FALSE(backend.gpu.has_value());
  EXPECT_GT(backend.memory.device, 0U);
}

TEST(CpuBackend, ObeysFlagsOfStepsOnEachOfSeveralRanks) {
  Config config{.device = DeviceKind::cpu};
  config.gpu.graph = false;
  config.lms.enabled = config.lms.verify = true;
  const Backend whole = make_backend(config, std::array{cpu_backend()});
  EXPECT_TRUE(whole.steps.verify);
  EXPECT_FALSE(whole.steps.record);
  EXPECT_THAT(whole.notes, testing::Contains(testing::StartsWith("--lms_verify: ")));
  const Backend part = whole.for_rank(config, 1, 2);
  EXPECT_TRUE(part.steps.verify);
  EXPECT_FALSE(part.steps.record);
}

TEST(CpuBackend, RefusesFp16) {
  const std::array<BackendKind, 1> kinds{cpu_backend()};
  Config config;
  config.device = DeviceKind::cpu;
  config.precision.type = Precision::fp16;
  EXPECT_THROW(make_backend(config, kinds), Error);
}

}  // namespace
}  // namespace cnn::bench
