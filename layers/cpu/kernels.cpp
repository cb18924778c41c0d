#include "layers/cpu/kernels.h"

#include <array>

#include "layers/cpu/average_pool.h"
#include "layers/cpu/max_pool.h"
#include "layers/cpu/rows.h"
#include "layers/cpu/simd/loops.h"
#include "layers/host_variable.h"

namespace cnn::layers::cpu {

void add_own_kernels(KernelTable& table, const Loops& loops) {
  using AddRows = void (*)(KernelTable&, const Loops&);
  constexpr std::array all{AddRows{add_batch_norm_rows},
                           AddRows{add_batch_norm_backward_rows},
                           AddRows{add_batch_norm_inference_rows},
                           AddRows{add_sliced_norm_rows},
                           AddRows{add_activation_rows},
                           AddRows{add_elementwise_rows},
                           AddRows{add_concat_rows},
                           AddRows{add_batch_slice_rows},
                           AddRows{add_row_slice_rows},
                           AddRows{add_column_slice_rows},
                           AddRows{add_dropout_rows},
                           AddRows{add_drop_path_rows},
                           AddRows{add_loss_rows},
                           AddRows{add_optimizer_rows},
                           AddRows{add_spatial_mean_rows},
                           AddRows{add_flatten_rows},
                           AddRows{add_subsample_rows}};
  for (const AddRows add_rows : all) {
    add_rows(table, loops);
  }
}

const Loops& loops_for(const Isa& isa) {
  return isa.avx512_fp16   ? avx512_fp16_loops()
         : isa.avx512_bf16 ? avx512_bf16_loops()
         : isa.avx512      ? avx512_loops()
                           : avx2_loops();
}

void add_kernels(KernelTable& table, const KernelChoice& choice) {
  if (choice.isa.avx2 && choice.winograd) {
    add_winograd_rows(table, choice.isa);
  }
  if (choice.isa.avx2) {  // before the library's rows, which would take these pools too
    add_average_pool_rows(table, choice.isa);
  }
  // Add a line here with each file that defines such a function.
  add_narrow_dense_rows(table);
  add_half_convert_rows(table);
  add_library_rows(table, choice);
  add_lrn_rows(table);
  add_lrn_within_rows(table);
  add_stale_gradient_rows(table);
  add_host_variable_rows(table);
  if (choice.isa.avx2) {
    add_max_pool_rows(table, choice.isa);
    add_own_kernels(table, loops_for(choice.isa));
  }
}

}  // namespace cnn::layers::cpu
