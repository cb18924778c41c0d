#include "layers/drop_path.h"

#include <algorithm>
#include <array>

#include "layers/cpu/own_kernel.h"
#include "layers/cpu/parallel.h"
#include "layers/cpu/rows.h"
#include "runtime/divide_up.h"

namespace cnn::layers::cpu {

namespace {

// Elements per call of a loop; one bit for each element tells whether it is kept.
constexpr std::int64_t piece = 8192;

// An example's elements are contiguous in every layout, padding included.
void drop_examples(const Loops& loops, const DropPath& op, const Operands& o) {
  const TypedLoops& typed = loops_of(loops, o.in[0].desc.type);
  const std::int32_t step = o.in[1].as<std::int32_t>()[0];
  const float keep = static_cast<float>(op.schedule.kept(step)) * 0x1p-24F;
  const std::int64_t of_example = stored_elements(o.in[0].desc) / o.in[0].desc.shape[0];
  const std::int64_t pieces = divide_up(of_example, piece);
  parallel_for(o.in[0].desc.shape[0] * pieces, elements_per_thread / piece,
               [&](std::int64_t begin, std::int64_t end) {
                 std::array<std::uint8_t, piece / 8> bits{};
                 for (std::int64_t i = begin; i < end; ++i) {
                   const std::int64_t example = i / pieces;
                   const std::int64_t first = i % pieces * piece;
                   const bool kept = keeps_path(op, step, static_cast<std::uint64_t>(example));
                   bits.fill(kept ? 0xFF : 0);
                   const std::int64_t at_element = example * of_example + first;
                   typed.select(at(o.in[0], at_element), at(o.out[0], at_element),
                                std::min(piece, of_example - first), bits.data(), keep);
                 }
               });
}

}  // namespace

void add_drop_path_rows(KernelTable& table, const Loops& loops) {
  table.add<DropPath>(
      [](const DropPath&, const Signature& request) -> std::optional<KernelSpec> {
        const TensorDesc& x = request.in[0];
        if (!is_vectorised(x.type) || x.layout == Layout::packed) {
          return std::nullopt;
        }
        KernelSpec spec = as_requested(request);
        spec.out[0].layout = x.layout;
        spec.out[0].packing = nullptr;
        return spec;
      },
      [&loops](const DropPath& op, const Signature&) {
        return own_kernel([&loops, op](const Operands& o) { drop_examples(loops, op, o); });
      });
}

}  // namespace cnn::layers::cpu
