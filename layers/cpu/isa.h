#pragma once

#include <string>
#include <vector>

#include "runtime/tensor.h"

namespace cnn::layers::cpu {

// Instruction sets that choose kernels and layouts.
struct Isa {
  bool avx2 = false;         // with FMA and F16C
  bool avx512 = false;       // F, CD, BW, DQ, VL: Skylake-SP and later
  bool avx512_bf16 = false;  // bf16 dot products
  bool amx_bf16 = false;     // bf16 tiles
  bool operator==(const Isa&) const = default;
};

Isa hardware_isa();   // what processor and operating system have
Isa effective_isa();  // what of it oneDNN may use (see ONEDNN_MAX_CPU_ISA), all without oneDNN: use
                      // this one, it is cheap
std::string to_string(const Isa& isa);  // "sse2 avx2 avx512"

// Whether networks can be computed with activations in bf16 here.
bool computes_bf16();

// Whether bf16 products run faster than f32 ones, as with tiles or where AVX512_BF16 has full rate.
bool multiplies_bf16_fast();

// The layout in which a network of such activations runs fastest, measured on whole convolutions.
Layout preferred_layout(DataType type);

// Name and version of a library as it runs, for reports.
struct LibraryVersion {
  std::string name, version;
};
std::vector<LibraryVersion> library_versions();  // oneDNN with its effective instruction set, or
                                                 // nothing in a build without it

}  // namespace cnn::layers::cpu
