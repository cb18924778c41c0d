#include "bench/machine/simulated_backend.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <string>

#include "bench/machine/machine_model.h"
#include "layers/all_reduce.h"
#include "tests/support/error_of.h"

namespace cnn::bench {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

Backend describe_by_name(const Config& /*config*/, const MachineModel& model) {
  return Backend{.name = "described for " + model.name};
}

std::string missing_device() { return "no CUDA device: broken"; }

// A backend kind that describes machines but has no device.
constexpr BackendKind describing_kind{
    .device = "gpu", .missing = missing_device, .describe = describe_by_name};

Config simulating(const char* machine) {
  return {.device = DeviceKind::gpu, .gpu = {.simulate = machine}};
}

TEST(SimulatedBackend, IsDescribedByTheLibrariesOfItsKind) {
  Config config = simulating("h200");
  config.precision.type = Precision::bf16;
  const Backend backend = simulated_backend(config, &describing_kind);
  EXPECT_EQ(backend.name, "described for H200");
  EXPECT_EQ(backend.compute, DataType::bf16);
  EXPECT_EQ(backend.link->in, 50e9);
  ASSERT_TRUE(backend.described.has_value());
  EXPECT_EQ(backend.described->machine, "H200");
  EXPECT_EQ(backend.described->ceilings.flops_per_second, 790e12);
  EXPECT_EQ(backend.described->assumed, "");
  EXPECT_EQ(backend.device, nullptr);
}

TEST(SimulatedBackend, IsAssumedWhereNoLibraryDescribesTheMachine) {
  const Backend backend = simulated_backend(simulating("p100-pcie3"), &describing_kind);
  EXPECT_EQ(backend.name, "cuda");
  EXPECT_EQ(backend.precision, "f32");
  EXPECT_EQ(backend.memory.device, 16'320'875'724U);
  EXPECT_EQ(backend.memory.host, std::size_t{64} << 30U);
  EXPECT_THAT(backend.described->assumed, StartsWith("cuDNN does not describe this GPU here: "));
}

TEST(SimulatedBackend, IsAssumedInABuildWithoutTheLibraries) {
  const BackendKind without_describe{.device = "gpu"};
  for (const BackendKind* kind : {static_cast<const BackendKind*>(nullptr), &without_describe}) {
    const Backend backend = simulated_backend(simulating("h100"), kind);
    EXPECT_EQ(backend.name, "cuda");
    EXPECT_THAT(backend.described->assumed, StartsWith("this build has no cuDNN to ask: "));
    EXPECT_THAT(backend.description, HasSubstr("H100 as its profile describes it"));
    EXPECT_EQ(backend.preferred_layout(DataType::f16), Layout::nhwc);
  }
}

TEST(SimulatedBackend, HasTheShareOfItsMemoryThatTheFlagsAllow) {
  Config config = simulating("h100");
  const std::size_t usable = simulated_backend(config, nullptr).memory.device;
  config.gpu.memory_fraction = 0.5;
  EXPECT_EQ(simulated_backend(config, nullptr).memory.device, 85'045'346'304U / 2);
  config.gpu.memory_fraction = 1;
  EXPECT_EQ(simulated_backend(config, nullptr).memory.device, usable) << "never more than usable";
}

TEST(SimulatedBackend, ExchangesGradientsWhereRanksAreSimulated) {
  Config config = simulating("h100");
  const layers::AllReduce exchange(0, 1);
  const Signature gradients{.in = {{.shape = {8}}}, .out = {{.shape = {8}}}};
  EXPECT_FALSE(
      simulated_backend(config, nullptr).kernels.describe(exchange, gradients).has_value());
  config.comm.simulate_ranks = {8};
  EXPECT_TRUE(simulated_backend(config, nullptr).kernels.describe(exchange, gradients).has_value());
}

TEST(SimulatedBackend, IsRefusedForAnUnknownMachineOrPrecision) {
  EXPECT_THAT(tests::error_of([] { simulated_backend(simulating("h2000"), nullptr); }),
              HasSubstr("h200"));
  Config config = simulating("p100-pcie3");
  config.precision.type = Precision::bf16;
  EXPECT_THAT(tests::error_of([&] { simulated_backend(config, nullptr); }), HasSubstr("bf16"));
}

}  // namespace
}  // namespace cnn::bench
