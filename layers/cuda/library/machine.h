#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "runtime/tensor.h"

namespace cnn::layers::cuda {

// What is known of a kind of device without having one: enough to plan a step for it and to say
// how long it would take at best.
struct Machine {
  std::string name;         // "H200"
  std::string device_json;  // as cuDNN describes the device to itself
  int capability = 0;       // 90 for compute capability 9.0
  int multiprocessors = 0;
  std::size_t memory_bytes = 0;
  double bandwidth = 0;  // bytes/s of a copy, read and write counted
  // Floating-point operations/s of a matrix product, a multiply-add counted as two. f32: without
  // tensor cores.
  double flops_f16 = 0, flops_bf16 = 0, flops_tf32 = 0, flops_f32 = 0;
  std::string source;  // where bandwidth and flops come from: measured, published, estimated

  // strict_f32: f32 products are not rounded to TF32.
  double flops(DataType type, bool strict_f32) const {
    if (type == DataType::f16 || type == DataType::bf16) {
      return type == DataType::f16 ? flops_f16 : flops_bf16;
    }
    return strict_f32 ? flops_f32 : flops_tf32;
  }
};

}  // namespace cnn::layers::cuda
