// Checks that the largest batch that --find_max_batch finds fits an emulated GPU whose memory is
// only slightly larger than the limit.

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <string>

#include "tests/program/emulated_gpu/emulated_program.h"

namespace cnn::tests {
namespace {

using testing::HasSubstr;

constexpr std::size_t for_libraries = 768;  // MiB that a run reserves for libraries

int largest_batch(const Words& flags) {
  const Finished search = run_on_gpu(with(flags, {"--find_max_batch"}));
  EXPECT_EQ(search.status, 0) << search.err;
  const std::string found = "Largest batch_size: ";
  EXPECT_THAT(search.out, HasSubstr(found));
  return std::stoi("0" + search.out.substr(search.out.find(found) + found.size()));
}

void expect_largest_runs(const Words& flags, std::size_t free_mib) {
  const std::string device_mib = std::to_string(free_mib + for_libraries);
  const Environment memory("CNN_EMULATED_MB", device_mib.c_str());
  const int largest = largest_batch(flags);
  ASSERT_GT(largest, 1);
  const Training run = train("gpu", with(flags, {"--batch_size=" + std::to_string(largest)}));
  EXPECT_EQ(run.base.size(), 2U);
  EXPECT_LE(run.peak_bytes, free_mib << 20U);
  EXPECT_GT(run.peak_bytes, (free_mib - 1) << 20U);
  const Finished larger = run_on_gpu(with(flags, {"--batch_size=" + std::to_string(largest + 1)}));
  EXPECT_EQ(larger.status, 3);
  EXPECT_THAT(larger.err, HasSubstr("Resource exhausted: OOM"));
}

TEST(EmulatedGpuMemory, HoldsTheLargestBatchThatIsFound) {
  expect_largest_runs(small_resnet({"--num_batches=2", "--precision=fp16"}), 36);
}

// This takes half a minute, because swapping allows a large batch.
TEST(SlowEmulatedGpuMemory, HoldsTheLargestBatchThatIsFoundWithSwapping) {
  expect_largest_runs(small_resnet({"--num_batches=2", "--precision=fp16", "--image_size=32",
                                    "--lms", "--lms_policy=vdnn_all", "--lms_size_threshold=16"}),
                      35);
}

}  // namespace
}  // namespace cnn::tests
