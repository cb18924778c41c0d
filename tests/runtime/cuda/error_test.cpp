#include "runtime/cuda/error.h"

#include <gtest/gtest.h>
#include <string>
#include <utility>

#include "tests/support/error_of.h"

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

// A kernel's failure may appear only after the host has gone on to other operations.
TEST(CudaError, SaysWhichErrorsAnEarlierOperationMayHaveMade) {
  for (const auto& [status, is_left] :
       {std::pair(cudaErrorLaunchFailure, true), std::pair(cudaErrorIllegalAddress, true),
        std::pair(cudaErrorInvalidValue, false)}) {
    const std::string text = cnn::tests::error_of([status = status] { check(status); });
    EXPECT_EQ(text.find("--sync_each_kernel") != std::string::npos, is_left) << text;
  }
}

}  // namespace
}  // namespace cnn::cuda
