#pragma once

#include <vector>

#include "allreduce/simd/table.h"

namespace cnn::tests {

// Returns the loop tables that this processor can run, the fastest one last.
inline std::vector<const allreduce::simd::Loops*> usable_loops() {
  std::vector<const allreduce::simd::Loops*> all{&allreduce::simd::plain_loops()};
  if (__builtin_cpu_supports("avx2") != 0 && __builtin_cpu_supports("fma") != 0 &&
      __builtin_cpu_supports("f16c") != 0) {
    all.push_back(&allreduce::simd::avx2_loops());
    if (__builtin_cpu_supports("avx512f") != 0 && __builtin_cpu_supports("avx512bw") != 0 &&
        __builtin_cpu_supports("avx512dq") != 0 && __builtin_cpu_supports("avx512vl") != 0) {
      all.push_back(&allreduce::simd::avx512_loops());
    }
  }
  return all;
}

}  // namespace cnn::tests
