#pragma once

namespace cnn::tests::emulated {

// Empties the table of kernels and its settings.
void remove_kernels();

}  // namespace cnn::tests::emulated
