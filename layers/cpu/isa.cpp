#include "layers/cpu/isa.h"

#include <cpuid.h>
#include <cstdint>
#include <dnnl.hpp>
#include <string_view>
#include <utility>

namespace cnn::layers::cpu {
namespace {

struct Registers {
  unsigned a = 0, b = 0, c = 0, d = 0;
};

Registers cpuid(unsigned leaf, unsigned subleaf) {
  Registers r;  // stays zero where the processor does not know the leaf
  __get_cpuid_count(leaf, subleaf, &r.a, &r.b, &r.c, &r.d);
  return r;
}

constexpr bool has_bit(unsigned value, unsigned index) { return ((value >> index) & 1U) != 0; }

// XCR0: the register states that the operating system saves. An instruction set whose registers are
// not saved must not be used, whatever cpuid says. (Inline: the intrinsic needs a compiler flag.)
std::uint64_t saved_states() {
  if (!has_bit(cpuid(1, 0).c, 27)) {  // OSXSAVE
    return 0;
  }
  std::uint32_t low = 0, high = 0;
  asm volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
  return (std::uint64_t{high} << 32) | low;
}

// Instruction sets that a limit of oneDNN's leaves; its enumerators are sets of bits that grow.
Isa allowed_by(dnnl::cpu_isa limit) {
  const auto includes = [limit](dnnl::cpu_isa isa) {
    return (static_cast<unsigned>(limit) & static_cast<unsigned>(isa)) ==
           static_cast<unsigned>(isa);
  };
  return {.avx2 = includes(dnnl::cpu_isa::avx2),
          .avx512 = includes(dnnl::cpu_isa::avx512_core),
          .avx512_bf16 = includes(dnnl::cpu_isa::avx512_core_bf16),
          .amx_bf16 = includes(dnnl::cpu_isa::avx512_core_amx)};
}

std::string_view name_of(dnnl::cpu_isa isa) {
  switch (isa) {
    case dnnl::cpu_isa::sse41:
      return "sse41";
    case dnnl::cpu_isa::avx:
      return "avx";
    case dnnl::cpu_isa::avx2:
      return "avx2";
    case dnnl::cpu_isa::avx2_vnni:
      return "avx2_vnni";
    case dnnl::cpu_isa::avx2_vnni_2:
      return "avx2_vnni_2";
    case dnnl::cpu_isa::avx512_core:
      return "avx512_core";
    case dnnl::cpu_isa::avx512_core_vnni:
      return "avx512_core_vnni";
    case dnnl::cpu_isa::avx512_core_bf16:
      return "avx512_core_bf16";
    case dnnl::cpu_isa::avx512_core_fp16:
      return "avx512_core_fp16";
    case dnnl::cpu_isa::avx512_core_amx:
      return "avx512_core_amx";
    case dnnl::cpu_isa::avx512_core_amx_fp16:
      return "avx512_core_amx_fp16";
    default:
      return "default";
  }
}

}  // namespace

Isa hardware_isa() {
  const std::uint64_t states = saved_states();
  const bool ymm = (states & 0x06) == 0x06;          // XMM, YMM
  const bool zmm = (states & 0xe6) == 0xe6;          // and masks, ZMM
  const bool tiles = (states & 0x60000) == 0x60000;  // tile configuration and data
  const Registers one = cpuid(1, 0), seven = cpuid(7, 0), seven_one = cpuid(7, 1);
  const bool fma_f16c = has_bit(one.c, 12) && has_bit(one.c, 29);
  const bool core512 = has_bit(seven.b, 16) && has_bit(seven.b, 17) && has_bit(seven.b, 28) &&
                       has_bit(seven.b, 30) && has_bit(seven.b, 31);  // F, DQ, CD, BW, VL
  Isa isa;
  isa.avx2 = ymm && fma_f16c && has_bit(seven.b, 5);
  isa.avx512 = isa.avx2 && zmm && core512;
  isa.avx512_bf16 = isa.avx512 && has_bit(seven_one.a, 5);
  isa.amx_bf16 = isa.avx512_bf16 && tiles && has_bit(seven.d, 22) && has_bit(seven.d, 24);
  return isa;
}

Isa effective_isa() {
  // oneDNN looks at the hardware first; unlike cpuid, which a hypervisor traps, asking it is cheap.
  return allowed_by(dnnl::get_effective_cpu_isa());
}

bool multiplies_bf16_fast() {
  // Processors with AVX512_FP16 (Sapphire Rapids and later) do bf16 in tiles; their vector
  // instruction for it has half the rate of f32: 175 against 350 GFLOP/s in convolutions on two
  // cores of one whose tiles the hypervisor hides. Those without have a fast one.
  const dnnl::cpu_isa isa = dnnl::get_effective_cpu_isa();
  return effective_isa().amx_bf16 || isa == dnnl::cpu_isa::avx512_core_bf16;
}

std::string to_string(const Isa& isa) {
  std::string text = "sse2";  // what every x86-64 has
  const auto append = [&text](bool has, std::string_view name) {
    if (has) {
      text.append(" ").append(name);
    }
  };
  append(isa.avx2, "avx2");
  append(isa.avx512, "avx512");
  append(isa.avx512_bf16, "avx512_bf16");
  append(isa.amx_bf16, "amx_bf16");
  return text;
}

Layout preferred_layout(DataType type) {
  const Isa isa = effective_isa();
  // Tiles read channels innermost: blocked bf16 convolutions do not use them and take four times
  // as long. Without AVX-512 oneDNN blocks by 8, which is none of our layouts.
  if (!isa.avx512 || (type == DataType::bf16 && isa.amx_bf16)) {
    return Layout::nhwc;
  }
  return Layout::nchw16c;
}

std::vector<LibraryVersion> library_versions() {
  const dnnl::version_t* v = dnnl::version();
  std::string version = std::to_string(v->major);
  version += "." + std::to_string(v->minor) + "." + std::to_string(v->patch);
  version += " (" + std::string(name_of(dnnl::get_effective_cpu_isa())) + ")";
  return {{"oneDNN", std::move(version)}};
}

}  // namespace cnn::layers::cpu
