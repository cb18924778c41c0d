#include "layers/cpu/isa.h"

#include <cpuid.h>
#include <cstdint>
#include <string_view>

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

}  // namespace cnn::layers::cpu
