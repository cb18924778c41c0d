#include "layers/cpu/kernels.h"

#include <array>

#include "layers/cpu/rows.h"

namespace cnn::layers::cpu {

void add_kernels(KernelTable& table) {
  using AddRows = void (*)(KernelTable&);
  // Add a line here together with the file that defines the function.
  constexpr std::array<AddRows, 4> all{add_conv_rows, add_dense_rows, add_pool_rows,
                                       add_convert_rows};
  for (const AddRows add_rows : all) {
    add_rows(table);
  }
}

}  // namespace cnn::layers::cpu
