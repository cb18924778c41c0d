#include "layers/cuda/cudnn/cudnn_descriptor.h"

#include <cstdint>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "tests/support/error_of.h"

namespace cnn::layers::cuda {
namespace {

using testing::AllOf;
using testing::HasSubstr;

const std::vector<std::int64_t> sizes{2, 8, 4, 5}, strides{160, 1, 40, 8};

Descriptor open_tensor(std::int64_t id) {
  Descriptor tensor(CUDNN_BACKEND_TENSOR_DESCRIPTOR);
  tensor.set(CUDNN_ATTR_TENSOR_DATA_TYPE, CUDNN_DATA_HALF);
  tensor.set(CUDNN_ATTR_TENSOR_DIMENSIONS, std::span<const std::int64_t>(sizes));
  tensor.set(CUDNN_ATTR_TENSOR_STRIDES, std::span<const std::int64_t>(strides));
  tensor.set(CUDNN_ATTR_TENSOR_UNIQUE_ID, id);
  tensor.set(CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT, std::int64_t{16});
  return tensor;
}

TEST(CheckCudnn, ThrowsWhatWasDoneAndTheStatusByItsName) {
  EXPECT_NO_THROW(check_cudnn(CUDNN_STATUS_SUCCESS, "fail"));
  EXPECT_THAT(tests::error_of([] { check_cudnn(CUDNN_STATUS_BAD_PARAM, "take a tensor"); }),
              AllOf(HasSubstr("cuDNN cannot take a tensor: "),
                    HasSubstr(cudnnGetErrorString(CUDNN_STATUS_BAD_PARAM))));
}

TEST(CudnnDescriptor, GivesBackEachAttributeInItsType) {
  Descriptor tensor = open_tensor(7);
  tensor.finalize("a tensor");
  EXPECT_EQ(tensor.get<std::int64_t>(CUDNN_ATTR_TENSOR_UNIQUE_ID), 7);
  EXPECT_EQ(tensor.get<cudnnDataType_t>(CUDNN_ATTR_TENSOR_DATA_TYPE), CUDNN_DATA_HALF);
  EXPECT_EQ(tensor.get_all<std::int64_t>(CUDNN_ATTR_TENSOR_STRIDES, 4), strides);
}

TEST(CudnnDescriptor, ReturnsAsManyValuesAsThereAreAndAtMostThoseAskedFor) {
  Descriptor tensor = open_tensor(1);
  tensor.finalize("a tensor");
  EXPECT_EQ(tensor.count(CUDNN_ATTR_TENSOR_DIMENSIONS, CUDNN_TYPE_INT64), 4U);
  EXPECT_EQ(tensor.get_all<std::int64_t>(CUDNN_ATTR_TENSOR_DIMENSIONS, 8), sizes);
}

TEST(CudnnDescriptor, NamesWhatTheLibraryDoesNotTake) {
  Descriptor tensor(CUDNN_BACKEND_TENSOR_DESCRIPTOR);
  EXPECT_FALSE(tensor.try_finalize());
  EXPECT_THAT(tests::error_of([&] { tensor.finalize("a tensor of mine"); }),
              HasSubstr("cuDNN cannot take a tensor of mine: "));
  Descriptor whole = open_tensor(1);
  EXPECT_TRUE(whole.try_finalize());
}

TEST(CudnnDescriptor, NamesTheAttributeThatCannotBeSetOrRead) {
  Descriptor tensor = open_tensor(1);
  const std::string id = std::to_string(CUDNN_ATTR_TENSOR_UNIQUE_ID);
  EXPECT_THAT(tests::error_of([&] { tensor.set(CUDNN_ATTR_TENSOR_UNIQUE_ID, 1.0F); }),
              HasSubstr("cuDNN cannot set attribute " + id + ": "));
  tensor.finalize("a tensor");
  EXPECT_THAT(tests::error_of([&] { tensor.get<float>(CUDNN_ATTR_TENSOR_UNIQUE_ID); }),
              HasSubstr("cuDNN cannot read attribute " + id + ": "));
}

TEST(CudnnDescriptor, BelongsToOneOwnerAtATime) {
  Descriptor first = open_tensor(3);
  const void* const native = first.native();
  Descriptor second = std::move(first);
  EXPECT_EQ(second.native(), native);
  second.finalize("a tensor");
  EXPECT_EQ(second.get<std::int64_t>(CUDNN_ATTR_TENSOR_UNIQUE_ID), 3);
}

}  // namespace
}  // namespace cnn::layers::cuda
