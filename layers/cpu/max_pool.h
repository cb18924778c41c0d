#pragma once

#include "layers/cpu/isa.h"
#include "runtime/kernel.h"

namespace cnn::layers::cpu {

// Adds MaxPool with our loops, in the best of these instruction sets, AVX2 at least: oneDNN's max
// pools ignore a NaN.
void add_max_pool_rows(KernelTable& table, const Isa& isa);

}  // namespace cnn::layers::cpu
