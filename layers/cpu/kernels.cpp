#include "layers/cpu/kernels.h"

#include <array>

#include "layers/cpu/isa.h"
#include "layers/cpu/rows.h"
#include "layers/cpu/simd/loops.h"

namespace cnn::layers::cpu {

void add_own_kernels(KernelTable& table, const Loops& loops) {
  using AddRows = void (*)(KernelTable&, const Loops&);
  constexpr std::array all{AddRows{add_batch_norm_rows},
                           AddRows{add_batch_norm_backward_rows},
                           AddRows{add_batch_norm_inference_rows},
                           AddRows{add_activation_rows},
                           AddRows{add_elementwise_rows},
                           AddRows{add_concat_rows},
                           AddRows{add_dropout_rows},
                           AddRows{add_loss_rows},
                           AddRows{add_optimizer_rows},
                           AddRows{add_spatial_mean_rows},
                           AddRows{add_flatten_rows}};
  for (const AddRows add_rows : all) {
    add_rows(table, loops);
  }
}

void add_kernels(KernelTable& table, const KernelChoice& choice) {
  const Isa isa = effective_isa();
  if (isa.avx2 && choice.winograd) {
    add_winograd_rows(table, isa.avx512 ? avx512_loops() : avx2_loops());
  }
  using AddRows = void (*)(KernelTable&);
  // Add a line here together with the file that defines the function.
  constexpr std::array<AddRows, 4> all{add_narrow_dense_rows, add_half_convert_rows,
                                       add_library_rows, add_lrn_rows};
  for (const AddRows add_rows : all) {
    add_rows(table);
  }
  if (isa.avx2) {
    add_own_kernels(table, isa.avx512 ? avx512_loops() : avx2_loops());
  }
}

}  // namespace cnn::layers::cpu
