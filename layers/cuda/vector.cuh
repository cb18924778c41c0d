#pragma once

#include <cstdint>

#include "runtime/cuda/launch.h"

// Vectorised loads and stores of our kernels: elements of any floating-point type in memory,
// arithmetic in f32.
namespace cnn::layers::cuda {

__device__ inline float to_float(float value) { return value; }
__device__ inline float to_float(std::uint8_t value) { return static_cast<float>(value); }
__device__ inline float to_float(__half value) { return __half2float(value); }
__device__ inline float to_float(__nv_bfloat16 value) { return __bfloat162float(value); }

// Converts to T, rounding to nearest even.
template <class T>
__device__ T from_float(float value);
template <>
__device__ inline float from_float<float>(float value) {
  return value;
}
template <>
__device__ inline __half from_float<__half>(float value) {
  return __float2half_rn(value);
}
template <>
__device__ inline __nv_bfloat16 from_float<__nv_bfloat16>(float value) {
  return __float2bfloat16_rn(value);
}

// `count` neighbouring elements, aligned so that one memory access moves them; at most 16 bytes.
template <class T, int count>
struct alignas(sizeof(T) * count) Pack {
  T element[count];
};

// The number of elements in 16 bytes.
template <class T>
inline constexpr int full_width = static_cast<int>(16 / sizeof(T));

// All of these functions require that `from` and `to` are aligned to the pack. load() is fetch()
// followed by widen(). Kernels call the two separately to keep several loads in flight, because the
// compiler may not move a load above a store that may alias it.
template <int count, class T>
__device__ Pack<T, count> fetch(const T* from) {
  return *reinterpret_cast<const Pack<T, count>*>(from);
}

template <int count, class T>
__device__ void widen(const Pack<T, count>& from, float (&to)[count]) {
#pragma unroll
  for (int i = 0; i < count; ++i) {
    to[i] = to_float(from.element[i]);
  }
}

template <int count, class T>
__device__ void load(const T* from, float (&to)[count]) {
  widen(fetch<count>(from), to);
}

template <int count, class T>
__device__ void store(T* to, const float (&from)[count]) {
  Pack<T, count> pack;
#pragma unroll
  for (int i = 0; i < count; ++i) {
    pack.element[i] = from_float<T>(from[i]);
  }
  *reinterpret_cast<Pack<T, count>*>(to) = pack;
}

}  // namespace cnn::layers::cuda
