#include "layers/cpu/onednn/relu.h"

#include <array>
#include <cmath>
#include <cstddef>
#include <gtest/gtest.h>
#include <limits>

namespace cnn::layers::cpu {
namespace {

constexpr std::size_t count = 8;

// Returns x + 0 after the ReLU's post-ops, which a convolution applies to its sums in the same way.
std::array<float, count> relu_of(std::array<float, count> x) {
  const dnnl::engine engine(dnnl::engine::kind::cpu, 0);
  dnnl::stream stream(engine);
  const dnnl::memory::desc desc({1, count}, dnnl::memory::data_type::f32,
                                dnnl::memory::format_tag::ab);
  dnnl::post_ops after;
  append_relu(after);
  dnnl::primitive_attr attributes;
  attributes.set_post_ops(after);
  std::array<float, count> zeros{}, y{};
  dnnl::memory from(desc, engine, x.data()), zero(desc, engine, zeros.data()),
      to(desc, engine, y.data());
  dnnl::binary(dnnl::binary::primitive_desc(engine, dnnl::algorithm::binary_add, desc, desc, desc,
                                            attributes))
      .execute(stream, {{DNNL_ARG_SRC_0, from}, {DNNL_ARG_SRC_1, zero}, {DNNL_ARG_DST, to}});
  stream.wait();
  return y;
}

TEST(AppendRelu, KeepsPositiveNumbersToTheBit) {
  const std::array<float, count> x{
      1, 0.1F, 3e-30F, 1e30F, std::numeric_limits<float>::max(), 1.0000001F, 0x1p-127F, 7};
  const std::array<float, count> y = relu_of(x);
  for (std::size_t i = 0; i + 2 < count; ++i) {
    EXPECT_EQ(y[i], x[i]);
  }
  EXPECT_EQ(y[7], 7);
}

TEST(AppendRelu, GivesAPositiveZeroForNegativeNumbersAndZeros) {
  const std::array<float, count> y = relu_of(
      {-1, -0.1F, -3e-30F, -1e30F, -std::numeric_limits<float>::max(), 0.0F, -0.0F, -1e-44F});
  for (const float value : y) {
    EXPECT_EQ(value, 0);
    EXPECT_FALSE(std::signbit(value));
  }
}

TEST(AppendRelu, KeepsNanAndInfinity) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const float infinity = std::numeric_limits<float>::infinity();
  const std::array<float, count> y = relu_of({nan, -nan, infinity, 1, nan, infinity, -1, nan});
  for (const std::size_t at : {0, 1, 4, 7}) {
    EXPECT_TRUE(std::isnan(y[at])) << at;
  }
  EXPECT_EQ(y[2], infinity);
  EXPECT_EQ(y[5], infinity);
  EXPECT_EQ(y[3], 1);
  EXPECT_EQ(y[6], 0);
}

}  // namespace
}  // namespace cnn::layers::cpu
