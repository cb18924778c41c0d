#pragma once

#include <cstdint>

#include "runtime/tensor_hash.h"

namespace cnn::layers::cpu {

// Returns hash_of(), computed by the OpenMP team of the calling thread.
std::uint64_t parallel_hash(const TensorView& tensor, const HashKeys& keys);

}  // namespace cnn::layers::cpu
