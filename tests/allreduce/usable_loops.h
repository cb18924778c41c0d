#pragma once

#include <cpuid.h>
#include <vector>

#include "allreduce/simd/table.h"

namespace cnn::tests {

// Returns whether the processor converts f16. The builtin cannot tell with clang 14, which
// clang-tidy uses.
inline bool has_f16c() {
  unsigned a = 0, b = 0, c = 0, d = 0;
  return __get_cpuid(1, &a, &b, &c, &d) != 0 && (c & bit_F16C) != 0;
}

// Returns the loop tables that this processor can run, the fastest one last.
inline std::vector<const allreduce::simd::Loops*> usable_loops() {
  std::vector<const allreduce::simd::Loops*> all{&allreduce::simd::plain_loops()};
  if (__builtin_cpu_supports("avx2") != 0 && __builtin_cpu_supports("fma") != 0 && has_f16c()) {
    all.push_back(&allreduce::simd::avx2_loops());
    if (__builtin_cpu_supports("avx512f") != 0 && __builtin_cpu_supports("avx512bw") != 0 &&
        __builtin_cpu_supports("avx512dq") != 0 && __builtin_cpu_supports("avx512vl") != 0) {
      all.push_back(&allreduce::simd::avx512_loops());
    }
  }
  return all;
}

}  // namespace cnn::tests
