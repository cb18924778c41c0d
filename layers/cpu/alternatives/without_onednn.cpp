#include <algorithm>
#include <cstdint>
#include <optional>

#include "layers/cpu/isa.h"
#include "layers/cpu/own_kernel.h"
#include "layers/cpu/rows.h"
#include "layers/elementwise.h"

// Replaces onednn/library.cpp in builds without oneDNN: convolutions, products and pools fall back
// to the table's `otherwise`. The reference loops use nchw, most of our kernels do not, so this
// file adds conversions between layouts.
namespace cnn::layers::cpu {
namespace {

// Returns whether layouts of the tensor differ: numbers, and the indices of max pools.
bool is_convertible(const TensorDesc& desc) {
  return (desc.type == DataType::f32 || desc.type == DataType::u8) && desc.layout != Layout::packed;
}

std::optional<KernelSpec> describe_convert(const Convert& /*op*/, const Signature& request) {
  const TensorDesc& in = request.in[0];
  const TensorDesc& out = request.out[0];
  const bool possible = in.type == out.type && is_convertible(in) && is_convertible(out) &&
                        (in.shape.rank() == 4 || in.layout == out.layout);
  return possible ? std::optional(as_requested(request)) : std::nullopt;
}

void convert(const Operands& operands) {
  const TensorView& in = operands.in[0];
  const TensorView& out = operands.out[0];
  if (in.desc.shape.rank() == 4 && in.desc.type == DataType::u8) {
    map_images<std::uint8_t, std::uint8_t>(in, out, [](std::uint8_t value) { return value; });
  } else if (in.desc.shape.rank() == 4) {
    map_images<float, float>(in, out, [](float value) { return value; });
  } else {
    std::copy_n(in.data, in.desc.bytes(), out.data);
  }
}

Isa settled_isa() {
  const Isa have = hardware_isa(), limit = asked_limit().value_or(have);
  return {.avx2 = have.avx2 && limit.avx2,
          .avx512 = have.avx512 && limit.avx512,
          .avx512_bf16 = have.avx512_bf16 && limit.avx512_bf16,
          .avx512_fp16 = have.avx512_fp16 && limit.avx512_fp16,
          .amx_bf16 = have.amx_bf16 && limit.amx_bf16};
}

}  // namespace

Isa effective_isa() {
  static const Isa isa = settled_isa();  // a hypervisor traps cpuid
  return isa;
}

bool multiplies_bf16_fast(const Isa& /*isa*/) { return false; }

bool computes_bf16(const Isa& /*isa*/) { return false; }

Layout preferred_layout(DataType /*type*/, const Isa& /*isa*/) { return Layout::nhwc; }

std::vector<LibraryVersion> library_versions() { return {}; }

std::vector<ConvCandidateRows> library_conv_candidates(const Isa& /*isa*/) { return {}; }

void add_library_rows(KernelTable& table, const KernelChoice& /*choice*/) {
  table.add<Convert>(describe_convert, [](const Convert& /*op*/, const Signature& /*signature*/) {
    return own_kernel(convert);
  });
}

}  // namespace cnn::layers::cpu
