#include "layers/cpu/kernels.h"

#include <array>

#include "layers/cpu/rows.h"

namespace cnn::layers::cpu {

void add_kernels(KernelTable& table) {
  using AddRows = void (*)(KernelTable&);
  // Add a line here together with the file that defines the function.
  constexpr std::array<AddRows, 0> all{};
  for (const AddRows add_rows : all) {
    add_rows(table);
  }
}

}  // namespace cnn::layers::cpu
