#include "layers/cuda/cudnn/kernels.h"

#include "layers/cuda/cudnn/library_rows.h"
#include "layers/cuda/own_kernels.h"

namespace cnn::layers::cuda {

void add_library_kernels(KernelTable& table, const std::shared_ptr<Libraries>& libraries) {
  add_conv_rows(table, libraries);
  add_fused_conv_rows(table, libraries);
  add_dense_rows(table, libraries);
}

void add_kernels(KernelTable& table, const std::shared_ptr<Libraries>& libraries) {
  add_library_kernels(table, libraries);
  add_own_kernels(table);
}

}  // namespace cnn::layers::cuda
