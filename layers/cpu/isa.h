#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/tensor.h"

namespace cnn::layers::cpu {

// Instruction sets that choose kernels and layouts, weakest first: each needs those before it.
struct Isa {
  bool avx2 = false;         // with FMA and F16C
  bool avx512 = false;       // F, CD, BW, DQ, VL: Skylake-SP and later
  bool avx512_bf16 = false;  // bf16 dot products
  bool avx512_fp16 = false;  // arithmetic in f16: Sapphire Rapids and later
  bool amx_bf16 = false;     // bf16 tiles
  bool operator==(const Isa&) const = default;
};

std::string to_string(const Isa& isa);  // "sse2 avx2 avx512"

// The set of that name, a word of to_string, and all that it needs. Throws Error that lists the
// names if there is none.
Isa up_to(std::string_view name);

Isa hardware_isa();  // what processor and operating system have

// Returns the sets that this process uses, oneDNN included: at most what the environment variable
// CNN_MAX_CPU_ISA names (as up_to) or oneDNN's own ONEDNN_MAX_CPU_ISA. The first call settles it
// and must come before oneDNN is used; later ones are cheap. Throws Error where CNN_MAX_CPU_ISA
// names no set, or both are given.
Isa effective_isa();

// CNN_MAX_CPU_ISA as a set, or nothing if it is not given. Throws Error as effective_isa.
std::optional<Isa> asked_limit();

// One line where less is used than the hardware has, and why; else nothing.
std::optional<std::string> limit_note(const Isa& hardware, const Isa& used);

// Choices for instruction sets, here or elsewhere, depend on them and on whether this build
// has oneDNN, on nothing else.

// Whether networks can be computed with activations in bf16.
bool computes_bf16(const Isa& isa = effective_isa());

// Whether bf16 products run faster than f32 ones, as with tiles or where AVX512_BF16 has full rate.
bool multiplies_bf16_fast(const Isa& isa = effective_isa());

// The layout in which a network of such activations runs fastest, measured on whole convolutions.
Layout preferred_layout(DataType type, const Isa& isa = effective_isa());

// Name and version of a library as it runs, for reports.
struct LibraryVersion {
  std::string name, version;
};
std::vector<LibraryVersion> library_versions();  // oneDNN with its effective instruction set, or
                                                 // nothing in a build without it

}  // namespace cnn::layers::cpu
