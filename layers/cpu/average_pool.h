#pragma once

#include "layers/cpu/isa.h"
#include "runtime/kernel.h"

namespace cnn::layers::cpu {

// Adds AveragePool and AveragePoolBackward with our loops, in the best of these instruction sets,
// AVX2 at least. oneDNN's gradients of bf16 images add overlapping windows in bf16 or in f32,
// whichever the number of threads brings about, and take twice as long.
void add_average_pool_rows(KernelTable& table, const Isa& isa);

}  // namespace cnn::layers::cpu
