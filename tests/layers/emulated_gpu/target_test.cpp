#include "layers/cuda/cudnn/target.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <string>

#include "tests/layers/cuda/cudnn/h200.h"

namespace cnn::tests {
namespace {

using layers::cuda::Target;

TEST(Target, HasTheDescriptionOfADeviceThatIsNotThere) {
  const Target target = Target::described(h200().device_json);
  EXPECT_FALSE(target.is_live());
  EXPECT_EQ(target.handle(), nullptr);
  EXPECT_NE(target.properties(), nullptr);
}

TEST(Target, HasTheHandleOfALiveDevice) {
  cudnnHandle_t handle = nullptr;
  ASSERT_EQ(cudnnCreate(&handle), CUDNN_STATUS_SUCCESS);
  const layers::cuda::CudnnHandle owned(handle);
  const Target target = Target::live(handle);
  EXPECT_TRUE(target.is_live());
  EXPECT_EQ(target.handle(), handle);
  EXPECT_EQ(target.properties(), nullptr);
}

TEST(DeviceJson, DescribesADeviceAsTargetsReadIt) {
  const std::string text = layers::cuda::device_json(0);
  EXPECT_THAT(text, testing::HasSubstr("multiProcessorCount"));
  EXPECT_NO_THROW(Target::described(text));
}

TEST(CudnnVersionText, SeparatesMajorMinorAndPatchByPoints) {
  EXPECT_EQ(layers::cuda::cudnn_version_text(91900), "9.19.0");
  EXPECT_EQ(layers::cuda::cudnn_version_text(90103), "9.1.3");
}

}  // namespace
}  // namespace cnn::tests
