#pragma once

#include <dnnl.hpp>

namespace cnn::layers::cpu {

// Adds a ReLU that keeps a NaN, which eltwise_relu makes zero: x min(1, max(0, x times the largest
// float)), then + 0, because the product makes -0 of numbers below zero. Numbers below 2^-128 get
// smaller, and -infinity becomes NaN.
void append_relu(dnnl::post_ops& after);

}  // namespace cnn::layers::cpu
