#include "bench/cuda/speeds.h"

#include <gtest/gtest.h>
#include <string>
#include <vector>

namespace cnn::bench {
namespace {

TEST(MachineFor, GoesByTheNameOfTheDevice) {
  const std::vector<MachineModel> machines = known_machines();
  const auto name = [&](std::string_view device) {
    const std::optional<MachineModel> found = machine_for(device, machines);
    return found ? found->name : std::string("none");
  };
  EXPECT_EQ(name("NVIDIA H200"), "H200");
  EXPECT_EQ(name("NVIDIA H100 80GB HBM3"), "H100");
  EXPECT_EQ(name("NVIDIA A100-SXM4-40GB"), "A100");
  EXPECT_EQ(name("Tesla V100-SXM2-16GB").substr(0, 4), "V100");
  EXPECT_EQ(name("NVIDIA GeForce RTX 4090"), "none");
  EXPECT_EQ(name(""), "none");
}

// NVIDIA's figures for an H100 are 67 TFLOP/s in fp32 and 989 in fp16 at a clock of 1.83 GHz.
TEST(PeakFlops, AreThoseThatArePublished) {
  const cuda::DeviceFacts h100{
      .name = {}, .major = 9, .minor = 0, .multiprocessors = 132, .clock_khz = 1980000};
  EXPECT_NEAR(peak_flops(h100, "f32") / 1e12, 67, 1);
  EXPECT_NEAR(peak_flops(h100, "f16") / 1e12, 989 * 1.98 / 1.83, 5);
  EXPECT_EQ(peak_flops(h100, "bf16"), 2 * peak_flops(h100, "tf32"));
  // 2.25 PFLOP/s in bf16 for a B200 at 1.85 GHz.
  const cuda::DeviceFacts b200{
      .name = {}, .major = 10, .minor = 0, .multiprocessors = 148, .clock_khz = 1850000};
  EXPECT_NEAR(peak_flops(b200, "bf16") / 1e12, 2250, 15);
  const cuda::DeviceFacts p100{
      .name = {}, .major = 6, .minor = 0, .multiprocessors = 56, .clock_khz = 1480000};
  EXPECT_NEAR(peak_flops(p100, "tf32") / 1e12, 10.6, 0.1);
}

}  // namespace
}  // namespace cnn::bench
