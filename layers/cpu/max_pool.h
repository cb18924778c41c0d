#pragma once

#include "layers/cpu/isa.h"
#include "runtime/kernel.h"

namespace cnn::layers::cpu {

// MaxPool by loops of our own, in the best of these instruction sets, AVX2 at least: those of
// oneDNN pass over a NaN.
void add_max_pool_rows(KernelTable& table, const Isa& isa);

}  // namespace cnn::layers::cpu
