#pragma once

#include <cstdint>
#include <limits>

#include "layers/cpu/isa.h"
#include "layers/cpu/simd/pointwise.h"
#include "runtime/kernel.h"

// Rows of 1 x 1 convolutions by our own products of small matrices, in f32. Their weights have an
// order of oneDNN's, so that its kernels can share them.
namespace cnn::layers::cpu {

// Limits the layers that products serve.
struct ProductRule {
  std::int64_t min_channels = pointwise_block;  // of every image
  // Convolutions and data gradients: those with at most max_outs channels of results, which sum
  // over at least min_reduction times as many, in images of at least so many pixels.
  std::int64_t max_outs = std::numeric_limits<std::int64_t>::max();
  std::int64_t min_reduction = 0, min_image_pixels = 1;
  bool strides = true;  // whether they may have a stride
  // Weight gradients without strides: those whose y has at least min_pixels pixels and fewer than
  // max_pixels.
  std::int64_t min_pixels = 1, max_pixels = std::numeric_limits<std::int64_t>::max();
};

// The convolutions for which they are the rule with AVX2. Measured on ResNet-50's layers on a Zen
// 3; see README.md.
inline constexpr ProductRule measured_product_rule{
    .min_channels = 32, .min_pixels = 100, .max_pixels = 400};

// Those for which they are the rule with AVX-512, in nchw16c. Measured on layers of ResNet-50,
// GoogLeNet and Inception v3 on a Xeon; see README.md.
inline constexpr ProductRule reducing_product_rule{
    .max_outs = 128, .min_reduction = 2, .min_image_pixels = 784, .strides = false};

// The images of a row: f32 in nhwc or nchw16c, or bf16 in nchw16c, which are widened as products
// read them.
struct ProductImages {
  DataType type = DataType::f32;
  Layout layout = Layout::nhwc;
};

// Adds all three directions. Their weights have one order, so that none of them needs a conversion.
void add_product_rows(KernelTable& table, const Isa& isa, const ProductRule& rule,
                      const ProductImages& images = {});

// Adds convolutions and data gradients alone.
void add_product_conv_rows(KernelTable& table, const Isa& isa, const ProductRule& rule,
                           const ProductImages& images);

}  // namespace cnn::layers::cpu
