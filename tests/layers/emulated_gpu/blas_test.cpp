// Tests the results and the refusals of the emulated cuBLASLt.

#include <array>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <vector>

#include "layers/cuda/cudnn/cublas.h"
#include "layers/cuda/cudnn/libraries.h"
#include "runtime/cuda/device.h"
#include "runtime/error.h"
#include "tests/support/cuda/runtime/violation.h"

namespace cnn::tests {
namespace {

using layers::cuda::Product;
using layers::cuda::ProductShape;

class EmulatedProduct : public testing::Test {
 protected:
  void SetUp() override {
    cublasLtHandle_t handle = nullptr;
    ASSERT_EQ(cublasLtCreate(&handle), CUBLAS_STATUS_SUCCESS);
    handle_.reset(handle);
    stream_ = device_.make_stream(Lane::compute);
    workspace_ = device_.allocate(layers::cuda::product_workspace);
  }

  Buffer on_device(const std::vector<float>& values) {
    Buffer buffer = device_.allocate(values.size() * sizeof(float));
    stream_->copy(buffer.data(), reinterpret_cast<const std::byte*>(values.data()), buffer.bytes());
    stream_->synchronize();
    return buffer;
  }

  cuda::CudaDevice device_;
  layers::cuda::CublasHandle handle_;
  std::unique_ptr<Stream> stream_;
  Buffer workspace_;
};

// Computes [1 2; 3 4; 5 6] [1 0 2; 0 1 -9] + [1 1 1] and a ReLU, with row-major matrices.
TEST_F(EmulatedProduct, AddsTheBiasOfEachColumnAndClips) {
  const Buffer a = on_device({1, 2, 3, 4, 5, 6}), b = on_device({1, 0, 2, 0, 1, -9});
  const Buffer bias = on_device({1, 1, 1}), out = device_.allocate(9 * sizeof(float));
  Product product(handle_.get(), {.rows = 3,
                                  .columns = 3,
                                  .inner = 2,
                                  .in = DataType::f32,
                                  .out = DataType::f32,
                                  .bias = true,
                                  .relu = true,
                                  .strict_f32 = true});
  product.run(*stream_, {.a = a.data(),
                         .b = b.data(),
                         .bias = bias.data(),
                         .out = out.data(),
                         .workspace = workspace_.data()});
  std::array<float, 9> result{};
  stream_->copy(reinterpret_cast<std::byte*>(result.data()), out.data(), sizeof(result));
  stream_->synchronize();
  EXPECT_THAT(result, testing::ElementsAre(2, 3, 0, 4, 5, 0, 6, 7, 0));
}

TEST_F(EmulatedProduct, RefusesAMatrixThatIsTooSmall) {
  const emulated::ExpectViolations expecting;
  const Buffer a = on_device({1, 2, 3, 4, 5}), b = on_device({1, 0, 2, 0, 1, -9});
  const Buffer out = device_.allocate(9 * sizeof(float));
  Product product(handle_.get(),
                  {.rows = 3, .columns = 3, .inner = 2, .in = DataType::f32, .out = DataType::f32});
  EXPECT_THROW(
      product.run(
          *stream_,
          {.a = a.data(), .b = b.data(), .out = out.data(), .workspace = workspace_.data()}),
      Error);
  // cuBLASLt is column-major, so our b is its A.
  EXPECT_THAT(emulated::ExpectViolations::take(),
              testing::ElementsAre(testing::AllOf(testing::HasSubstr("matrix B"),
                                                  testing::HasSubstr("leaves its block"))));
}

}  // namespace
}  // namespace cnn::tests
