#include "runtime/cuda/error.h"

#include <gtest/gtest.h>
#include <string>

namespace cnn::cuda {
namespace {

TEST(CudaError, HasTheNameAndTheTextOfTheRuntime) {
  EXPECT_EQ(text_of(cudaErrorNoDevice), "cudaErrorNoDevice: no CUDA-capable device is detected");
  EXPECT_EQ(text_of(cudaErrorMemoryAllocation), "cudaErrorMemoryAllocation: out of memory");
}

TEST(CudaError, IsThrownForAnythingButSuccess) {
  EXPECT_NO_THROW(check(cudaSuccess));
  try {
    check(cudaErrorInvalidValue);
    FAIL() << "no error";
  } catch (const Error& error) {
    EXPECT_STREQ(error.what(), "cudaErrorInvalidValue: invalid argument");
    EXPECT_NE(std::string(error.where().file_name()).find("error_test"), std::string::npos);
  }
}

}  // namespace
}  // namespace cnn::cuda
