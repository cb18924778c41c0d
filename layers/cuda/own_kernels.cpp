#include "layers/cuda/own_kernels.h"

#include "layers/cuda/rows.h"
#include "layers/host_variable.h"

namespace cnn::layers::cuda {

void add_own_kernels(KernelTable& table) {
  using AddRows = void (*)(KernelTable&);
  // Add a line here together with the file that defines the function.
  constexpr AddRows all[] = {
      add_batch_norm_rows,
      add_batch_norm_backward_rows,
      add_batch_norm_inference_rows,
      add_sliced_norm_rows,
      add_moving_average_rows,
      add_fused_norm_rows,
      add_pool_rows,
      add_pool_backward_rows,
      add_spatial_mean_rows,
      add_subsample_rows,
      add_lrn_rows,
      add_lrn_within_rows,
      add_activation_rows,
      add_elementwise_rows,
      add_convert_rows,
      add_concat_rows,
      add_batch_slice_rows,
      add_flatten_rows,
      add_dropout_rows,
      add_drop_path_rows,
      add_loss_rows,
      add_synthetic_labels_rows,
      add_optimizer_rows,
      add_found_inf_rows,
      add_stale_gradient_rows,
      add_host_variable_rows,
  };
  for (const AddRows add_rows : all) {
    add_rows(table);
  }
}

}  // namespace cnn::layers::cuda
