#pragma once

#include <cstddef>
#include <cstdint>

// The inner loops of an all-reduce, one table per instruction set. The interface has plain pointers
// only, and variants share no code: the linker would merge an inline function compiled for two
// instruction sets into either of them. All tables yield the same bits.
namespace cnn::allreduce::simd {

// Element types of memory and messages. Conversions to bf16 and f16 round to nearest even and keep
// NaN; overflow of f16 becomes infinity.
enum class Type : std::uint8_t { f32, bf16, f16 };

// One operand of a sum.
struct Operand {
  const void* data = nullptr;
  Type type = Type::f32;
};

// n elements of f32, each the sum of the operands in f32: in sequence, or pairwise with the split
// in the middle. The sum is multiplied by `factor` and rounded to `round_to`. Outputs may overwrite
// operands.
struct Sum {
  const Operand* operands = nullptr;
  std::size_t count = 0;
  float* const* to = nullptr;
  std::size_t outputs = 0;
  std::size_t n = 0;
  bool pairwise = false;
  float factor = 1;
  Type round_to = Type::f32;
};

struct Loops {
  const char* name;  // "plain", "avx2", "avx512"
  void (*sum)(const Sum& sum);
  // Convert f32 to bf16 or f16, and back.
  void (*narrow)(const float* from, std::uint16_t* to, std::size_t n, Type type);
  void (*widen)(const std::uint16_t* from, float* to, std::size_t n, Type type);
};

const Loops& plain_loops();   // the reference of the other tables
const Loops& avx2_loops();    // require a processor with AVX2, FMA and F16C
const Loops& avx512_loops();  // require a processor with AVX-512 F, BW, DQ, VL

}  // namespace cnn::allreduce::simd
