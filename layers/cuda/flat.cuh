#pragma once

#include <algorithm>
#include <cstdint>
#include <utility>

#include "layers/cuda/own_kernel.h"
#include "layers/cuda/vector.cuh"
#include "runtime/cuda/launch.h"

// Grid-stride loops for elementwise kernels: they walk through memory as it lies, whatever the
// shape.
namespace cnn::layers::cuda {

inline constexpr int flat_threads = 256;

// Returns a grid with one thread for each item, but at most as many blocks as the device holds at
// once; threads then take further items at a distance of one grid. A second wave of blocks would
// run mostly alone.
inline dim3 flat_grid(std::int64_t items, std::int64_t resident_blocks) {
  const std::int64_t blocks = std::min(divide_up(items, flat_threads), resident_blocks);
  return dim3(static_cast<unsigned>(std::max<std::int64_t>(blocks, 1)));
}

// Launches a kernel that takes items from flat_thread() on in steps of flat_stride().
template <class... Parameters, class... Arguments>
void launch_flat(void (*kernel)(Parameters...), std::int64_t items, Stream& stream,
                 Arguments&&... arguments) {
  const std::int64_t resident_blocks = cnn::cuda::max_resident_blocks(kernel, flat_threads, 0);
  cnn::cuda::launch(kernel, flat_grid(items, resident_blocks), flat_threads, 0, stream,
                    std::forward<Arguments>(arguments)...);
}

__device__ inline std::int64_t flat_thread() {
  return static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
}
__device__ inline std::int64_t flat_stride() {
  return static_cast<std::int64_t>(gridDim.x) * blockDim.x;
}

// Calls visit(first element, integral_constant<int, width>) for all whole packs of `width` of n
// elements, and with a width of 1 for the rest.
template <int width, class Visit>
__device__ void each_pack(std::int64_t n, const Visit& visit) {
  const std::int64_t packs = n / width;
  for (std::int64_t i = flat_thread(); i < packs; i += flat_stride()) {
    visit(i * width, std::integral_constant<int, width>{});
  }
  const std::int64_t rest = packs * width + flat_thread();
  if (width > 1 && rest < n) {  // fewer than a block has threads
    visit(rest, std::integral_constant<int, 1>{});
  }
}

// Elements a thread moves at once between two types: 16 bytes of the narrower one, at most 8.
template <class From, class To>
inline constexpr int map_width = sizeof(From) <= 2 || sizeof(To) <= 2 ? 8 : 4;

// to[i] = function(from[i]); `to` may be `from`. A thread has two reads under way: the compiler
// cannot move the second before the first write by itself.
template <class From, class To, class Function>
__global__ void __launch_bounds__(flat_threads)
    map_elements(const From* from, To* to, std::int64_t n, Function function) {
  constexpr int width = map_width<From, To>;
  const auto write = [&](std::int64_t at, const auto& pack) {
    constexpr int count = sizeof(pack) / sizeof(From);
    float values[count];
    widen(pack, values);
#pragma unroll
    for (float& value : values) {
      value = function(value);
    }
    store<count>(to + at, values);
  };
  const std::int64_t packs = n / width;
  for (std::int64_t i = flat_thread(); i < packs; i += 2 * flat_stride()) {
    const std::int64_t other = i + flat_stride();
    const auto first = fetch<width>(from + i * width);
    const auto second = fetch<width>(from + (other < packs ? other : i) * width);
    write(i * width, first);
    if (other < packs) {
      write(other * width, second);
    }
  }
  const std::int64_t rest = packs * width + flat_thread();
  if (rest < n) {  // fewer than a block has threads
    write(rest, fetch<1>(from + rest));
  }
}

template <class From, class To, class Function>
void launch_map(const TensorView& from, const TensorView& to, Function function, Stream& stream) {
  const std::int64_t n = to.desc.shape.elements();
  if (n > 0) {
    launch_flat(map_elements<From, To, Function>, n / map_width<From, To> / 2, stream,
                data_of<const From>(from), data_of<To>(to), n, function);
  }
}

struct Identity {
  __device__ float operator()(float x) const { return x; }
};

// Describes what runs in every real type, on operands as a device keeps them.
inline std::optional<KernelSpec> describe_floats(const Signature& asked) {
  const DataType type = asked.in.empty() ? asked.out[0].type : asked.in[0].type;
  return is_float(type) ? std::optional(in_nhwc(asked)) : std::nullopt;
}

}  // namespace cnn::layers::cuda
