#pragma once

#include "runtime/kernel.h"
#include "runtime/tensor.h"

namespace cnn::tests {

// Trains a small network (two convolutions, a dense layer, their biases) three steps with momentum
// and automatic loss scale, the second of which overflows and is skipped; once with the copies of
// keep_copies() and once with a conversion per step. Expects the same bits in all variables and
// losses after every step; also after weights were written from outside. Expects `copies` copies.
// image: layout of images; compute: of 16 bits. table: with a kernel for every op.
void check_training_with_copies(const KernelTable& table, Layout image, DataType compute,
                                std::size_t copies);

}  // namespace cnn::tests
