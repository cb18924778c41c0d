#pragma once

#include <dnnl.hpp>

namespace cnn::layers::cpu {

// Appends a ReLU that keeps a NaN, which eltwise_relu turns into zero: x min(1, max(0, x times the
// largest float)), then + 0, because the product yields -0 for negative numbers. Numbers below
// 2^-128 become smaller, and -infinity becomes NaN.
void append_relu(dnnl::post_ops& after);

}  // namespace cnn::layers::cpu
