#include <algorithm>
#include <cstdint>
#include <optional>

#include "layers/cpu/isa.h"
#include "layers/cpu/own_kernel.h"
#include "layers/cpu/rows.h"
#include "layers/elementwise.h"

// In builds without oneDNN, in place of library_onednn.cpp: convolutions, products and pools are
// left to whatever the table does otherwise. The reference loops take nchw, our own kernels mostly
// do not, so conversions between layouts are here.
namespace cnn::layers::cpu {
namespace {

bool is_plain_f32(const TensorDesc& desc) {
  return desc.type == DataType::f32 && desc.layout != Layout::packed;
}

std::optional<KernelSpec> describe_convert(const Convert& /*op*/, const Signature& asked) {
  const TensorDesc& in = asked.in[0];
  const TensorDesc& out = asked.out[0];
  const bool possible =
      is_plain_f32(in) && is_plain_f32(out) && (in.shape.rank() == 4 || in.layout == out.layout);
  return possible ? std::optional(KernelSpec{.in = asked.in, .out = asked.out}) : std::nullopt;
}

// Channels that only pad the last block of nchw16c become zero.
void convert_image(const TensorView& in, const TensorView& out) {
  const Place from(in.desc);
  const Place to(out.desc);
  const auto* x = reinterpret_cast<const float*>(in.data);
  auto* y = reinterpret_cast<float*>(out.data);
  const std::int64_t channels = in.desc.shape[1];
  parallel_for(in.desc.shape[0], 1, [&](std::int64_t first, std::int64_t last) {
    for (std::int64_t n = first; n < last; ++n) {
      for (std::int64_t p = 0; p < to.pixels(); ++p) {
        for (std::int64_t c = 0; c < to.stored_channels(); ++c) {
          y[to(n, c, p)] = c < channels ? x[from(n, c, p)] : 0;
        }
      }
    }
  });
}

void convert(const Operands& operands) {
  const TensorView& in = operands.in[0];
  const TensorView& out = operands.out[0];
  if (in.desc.shape.rank() == 4) {
    convert_image(in, out);
  } else {
    std::copy_n(in.data, in.desc.bytes(), out.data);
  }
}

}  // namespace

Isa effective_isa() {
  static const Isa isa = hardware_isa();  // a hypervisor traps cpuid
  return isa;
}

bool multiplies_bf16_fast() { return false; }

bool computes_bf16() { return false; }

Layout preferred_layout(DataType /*type*/) { return Layout::nhwc; }

std::vector<LibraryVersion> library_versions() { return {}; }

void add_library_rows(KernelTable& table) {
  table.add<Convert>(describe_convert, [](const Convert& /*op*/, const Signature& /*signature*/) {
    return own_kernel(convert);
  });
}

}  // namespace cnn::layers::cpu
