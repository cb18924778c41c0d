#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/tensor.h"

namespace cnn::layers::cpu {

// Instruction sets that select kernels and layouts, weakest first: each implies the earlier ones.
struct Isa {
  bool avx2 = false;         // with FMA and F16C
  bool avx512 = false;       // F, CD, BW, DQ, VL: Skylake-SP and later
  bool avx512_bf16 = false;  // bf16 dot products
  bool avx512_fp16 = false;  // arithmetic in f16: Sapphire Rapids and later
  bool amx_bf16 = false;     // bf16 tiles
  bool operator==(const Isa&) const = default;
};

std::string to_string(const Isa& isa);  // "sse2 avx2 avx512"

// Returns the set with this name, a word of to_string, and all sets that it implies. Throws Error
// with all names if the name is unknown.
Isa up_to(std::string_view name);

Isa hardware_isa();  // sets that the processor and the operating system support

// Returns the sets that this process uses, oneDNN included: limited by the environment variable
// CNN_MAX_CPU_ISA (a name of up_to) or oneDNN's own ONEDNN_MAX_CPU_ISA. The first call fixes the
// result and must precede the first use of oneDNN; later calls are cheap. Throws Error if
// CNN_MAX_CPU_ISA names no set, or if both variables are set.
Isa effective_isa();

// Returns CNN_MAX_CPU_ISA as a set, or nothing if it is unset. Throws Error like effective_isa.
std::optional<Isa> asked_limit();

// Returns one line that explains why the process uses less than the hardware supports, else
// nothing.
std::optional<std::string> limit_note(const Isa& hardware, const Isa& used);

// The following functions depend only on the instruction sets and on whether this build has oneDNN.

// Returns whether networks can compute with activations in bf16.
bool computes_bf16(const Isa& isa = effective_isa());

// Returns whether bf16 products run faster than f32: with tiles, or where AVX512_BF16 has full
// rate.
bool multiplies_bf16_fast(const Isa& isa = effective_isa());

// Returns the layout in which a network of such activations runs fastest, measured on whole
// convolutions.
Layout preferred_layout(DataType type, const Isa& isa = effective_isa());

// Name and version of a loaded library, for reports.
struct LibraryVersion {
  std::string name, version;
};
// Returns oneDNN with its effective instruction set, or nothing in a build without it.
std::vector<LibraryVersion> library_versions();

}  // namespace cnn::layers::cpu
