#pragma once

namespace cnn::tests::emulated {

// Empties the table of kernels, and forgets what was set for them.
void remove_kernels();

}  // namespace cnn::tests::emulated
