#pragma once

#include <cstddef>
#include <cstdint>

// The inner loops of an all-reduce, one table per instruction set. Only plain pointers cross this
// border, and no code is shared between the variants: an inline function compiled for two
// instruction sets would be merged by the linker into either of them. All tables give the same
// bits.
namespace cnn::allreduce::simd {

// Element types of memory and messages. bf16 rounds to nearest even and keeps NaN NaN; f16 too, and
// what is too large becomes infinity.
enum class Type : std::uint8_t { f32, bf16, f16 };

// One operand of a sum.
struct Operand {
  const void* data = nullptr;
  Type type = Type::f32;
};

// n elements of f32, each the sum of the operands in f32: one after another, or pairwise with the
// split in the middle. Then times `factor` and rounded to what `round_to` can hold. The results may
// lie where operands do.
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
  void (*sum)(const Sum& of);
  // f32 as bf16 or f16, and back.
  void (*narrow)(const float* from, std::uint16_t* to, std::size_t n, Type type);
  void (*widen)(const std::uint16_t* from, float* to, std::size_t n, Type type);
};

const Loops& plain_loops();   // what the others are compared with
const Loops& avx2_loops();    // run them only where the processor has AVX2, FMA and F16C
const Loops& avx512_loops();  // run them only where it has AVX-512 F, BW, DQ, VL

}  // namespace cnn::allreduce::simd
