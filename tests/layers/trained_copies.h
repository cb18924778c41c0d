#pragma once

#include "runtime/kernel.h"
#include "runtime/tensor.h"

namespace cnn::tests {

// Checks that training with 16-bit copies of keep_copies() gives the same bits as a conversion per
// step. It trains a small network (two convolutions, a dense layer, biases) for three steps with
// momentum and automatic loss scale; the second step overflows and is skipped. Variables and losses
// must agree after every step, also after weights were written from outside. copies: their expected
// number. image: the layout of images. compute: a 16-bit type. table: has a kernel for every op.
void check_training_with_copies(const KernelTable& table, Layout image, DataType compute,
                                std::size_t copies);

}  // namespace cnn::tests
