#include "layers/cpu/isa.h"

#include <array>
#include <cpuid.h>
#include <cstdint>
#include <cstdlib>
#include <sys/syscall.h>
#include <unistd.h>

#include "runtime/error.h"

namespace cnn::layers::cpu {
namespace {

struct NamedSet {
  std::string_view name;
  bool Isa::*has;
};
constexpr std::array<NamedSet, 5> sets{{{"avx2", &Isa::avx2},
                                        {"avx512", &Isa::avx512},
                                        {"avx512_bf16", &Isa::avx512_bf16},
                                        {"avx512_fp16", &Isa::avx512_fp16},
                                        {"amx_bf16", &Isa::amx_bf16}}};

constexpr std::array<const char*, 2> limits{"CNN_MAX_CPU_ISA", "ONEDNN_MAX_CPU_ISA"};

// Returns an empty text if the variable is not set.
std::string environment(const char* variable) {
  const char* const value = std::getenv(variable);
  return value == nullptr ? "" : value;
}

struct Registers {
  unsigned a = 0, b = 0, c = 0, d = 0;
};

Registers cpuid(unsigned leaf, unsigned subleaf) {
  Registers r;  // stays zero if the processor lacks the leaf
  __get_cpuid_count(leaf, subleaf, &r.a, &r.b, &r.c, &r.d);
  return r;
}

constexpr bool has_bit(unsigned value, unsigned index) { return ((value >> index) & 1U) != 0; }

// Returns XCR0: the register states that the operating system saves. A program must not use an
// instruction set whose registers are not saved, even if cpuid reports it. (Inline: the intrinsic
// needs a compiler flag.)
std::uint64_t saved_states() {
  if (!has_bit(cpuid(1, 0).c, 27)) {  // OSXSAVE
    return 0;
  }
  std::uint32_t low = 0, high = 0;
  asm volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
  return (std::uint64_t{high} << 32) | low;
}

// Asks Linux to let the threads of this process use tiles, whose registers it saves only for those
// that have asked. Returns whether it does.
bool may_use_tiles() {
  constexpr long request = 0x1023, tile_data = 18;  // ARCH_REQ_XCOMP_PERM, XFEATURE_XTILEDATA
  static const bool allowed = syscall(SYS_arch_prctl, request, tile_data) == 0;
  return allowed;
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
  isa.avx512_fp16 = isa.avx512_bf16 && has_bit(seven.d, 23);
  isa.amx_bf16 =
      isa.avx512_fp16 && tiles && has_bit(seven.d, 22) && has_bit(seven.d, 24) && may_use_tiles();
  return isa;
}

std::string to_string(const Isa& isa) {
  std::string text = "sse2";  // the baseline of x86-64
  for (const NamedSet& set : sets) {
    if (isa.*set.has) {
      text.append(" ").append(set.name);
    }
  }
  return text;
}

Isa up_to(std::string_view name) {
  Isa isa;
  std::string known;
  for (const NamedSet& set : sets) {
    isa.*set.has = true;
    if (set.name == name) {
      return isa;
    }
    known.append(known.empty() ? "" : ", ").append(set.name);
  }
  throw Error("no instruction set is called '" + std::string(name) + "'; use one of " + known);
}

std::optional<Isa> asked_limit() {
  const std::string limit = environment(limits[0]);
  if (limit.empty()) {
    return std::nullopt;
  }
  check(environment(limits[1]).empty(),
        "CNN_MAX_CPU_ISA and ONEDNN_MAX_CPU_ISA are both set; drop one of them");
  try {
    return up_to(limit);
  } catch (const Error& error) {
    throw Error(std::string(limits[0]) + ": " + error.what());
  }
}

std::optional<std::string> limit_note(const Isa& hardware, const Isa& used) {
  if (hardware == used) {
    return std::nullopt;
  }
  std::string by = "oneDNN";
  for (const char* const variable : limits) {
    if (const std::string value = environment(variable); !value.empty()) {
      by = std::string(variable) + "=" + value;
    }
  }
  return "of the instruction sets " + to_string(hardware) + " only " + to_string(used) +
         " are used: limited by " + by;
}

}  // namespace cnn::layers::cpu
