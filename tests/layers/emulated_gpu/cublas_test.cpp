#include "layers/cuda/cudnn/cublas.h"

#include <cstddef>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <memory>
#include <vector>

#include "layers/cuda/cudnn/libraries.h"
#include "runtime/cuda/device.h"
#include "tests/support/error_of.h"

namespace cnn::tests {
namespace {

using layers::cuda::Product;
using layers::cuda::ProductShape;
using testing::ElementsAre;

// Products of [1 2; 3 4; 5 6] and [1 0 2; 0 1 -9], each of which may be stored transposed.
class ProductTest : public testing::Test {
 protected:
  void SetUp() override {
    cublasLtHandle_t created = nullptr;
    ASSERT_EQ(cublasLtCreate(&created), CUBLAS_STATUS_SUCCESS);
    handle.reset(created);
    stream = device.make_stream(Lane::compute);
    workspace = device.allocate(layers::cuda::product_workspace);
  }

  Buffer on_device(const std::vector<float>& values) {
    Buffer buffer = device.allocate(values.size() * sizeof(float));
    stream->copy(buffer.data(), reinterpret_cast<const std::byte*>(values.data()), buffer.bytes());
    stream->synchronize();
    return buffer;
  }

  std::vector<float> product(const std::vector<float>& a, const std::vector<float>& b,
                             ProductShape shape) {
    const Buffer on_a = on_device(a), on_b = on_device(b);
    const Buffer out = device.allocate(9 * sizeof(float));
    Product product(handle.get(), shape);
    product.run(
        *stream,
        {.a = on_a.data(), .b = on_b.data(), .out = out.data(), .workspace = workspace.data()});
    std::vector<float> result(9);
    stream->copy(reinterpret_cast<std::byte*>(result.data()), out.data(), out.bytes());
    stream->synchronize();
    return result;
  }

  cuda::CudaDevice device;
  layers::cuda::CublasHandle handle;
  std::unique_ptr<Stream> stream;
  Buffer workspace;
};

ProductShape square(bool a_transposed, bool b_transposed) {
  return {.rows = 3,
          .columns = 3,
          .inner = 2,
          .a_transposed = a_transposed,
          .b_transposed = b_transposed,
          .in = DataType::f32,
          .out = DataType::f32,
          .strict_f32 = true};
}

TEST_F(ProductTest, IsRowMajor) {
  EXPECT_THAT(product({1, 2, 3, 4, 5, 6}, {1, 0, 2, 0, 1, -9}, square(false, false)),
              ElementsAre(1, 2, -16, 3, 4, -30, 5, 6, -44));
}

TEST_F(ProductTest, ReadsAFactorThatIsStoredTransposed) {
  const std::vector<float> expected{1, 2, -16, 3, 4, -30, 5, 6, -44};
  EXPECT_EQ(product({1, 3, 5, 2, 4, 6}, {1, 0, 2, 0, 1, -9}, square(true, false)), expected);
  EXPECT_EQ(product({1, 2, 3, 4, 5, 6}, {1, 0, 0, 1, 2, -9}, square(false, true)), expected);
  EXPECT_EQ(product({1, 3, 5, 2, 4, 6}, {1, 0, 0, 1, 2, -9}, square(true, true)), expected);
}

TEST_F(ProductTest, ClipsBelowZeroWithoutABias) {
  ProductShape shape = square(false, false);
  shape.relu = true;
  EXPECT_THAT(product({1, 2, 3, 4, 5, 6}, {1, 0, 2, 0, 1, -9}, shape),
              ElementsAre(1, 2, 0, 3, 4, 0, 5, 6, 0));
}

// 1 + 2^-11 has more digits than TF32, which keeps ten.
TEST_F(ProductTest, RoundsF32FactorsToTf32UnlessStrict) {
  const std::vector<float> a{1 + 0x1p-11F, 0, 0, 0, 0, 0}, b{1, 0, 0, 0, 0, 0};
  ProductShape shape = square(false, false);
  EXPECT_EQ(product(a, b, shape).front(), 1 + 0x1p-11F);
  shape.strict_f32 = false;
  EXPECT_NE(product(a, b, shape).front(), 1 + 0x1p-11F);
}

TEST(CheckCublas, NamesTheAttemptAndTheStatus) {
  EXPECT_NO_THROW(layers::cuda::check_cublas(CUBLAS_STATUS_SUCCESS, "multiply"));
  EXPECT_THAT(error_of([] { layers::cuda::check_cublas(CUBLAS_STATUS_INVALID_VALUE, "multiply"); }),
              testing::AllOf(testing::HasSubstr("cuBLAS cannot multiply: "),
                             testing::HasSubstr("CUBLAS_STATUS_INVALID_VALUE")));
}

}  // namespace
}  // namespace cnn::tests
