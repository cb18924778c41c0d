#pragma once

#include <algorithm>

#include "runtime/tensor.h"
#include "tests/support/host_tensor.h"

namespace cnn::tests {

// Returns the f32 values rounded to bf16.
inline HostTensor bf16_words(const HostTensor& values) {
  HostTensor words({.shape = values.desc().shape, .type = DataType::bf16});
  std::ranges::transform(values.view().as<float>(), words.view().as<BFloat16>().begin(), to_bf16);
  return words;
}

}  // namespace cnn::tests
