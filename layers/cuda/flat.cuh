#pragma once

#include <algorithm>
#include <cstdint>
#include <utility>

#include "layers/cuda/own_kernel.h"
#include "layers/cuda/vector.cuh"
#include "runtime/cuda/launch.h"

// Grid-stride loops for element-wise kernels: they visit elements in memory order and ignore the
// shape.
namespace cnn::layers::cuda {

inline constexpr int flat_threads = 256;

// Returns a one-dimensional grid with one thread for each item, but at most one wave: as many
// blocks as are resident on the device at a time. Each thread of a full wave takes further items in
// a grid-stride loop, because a partial second wave would leave most multiprocessors idle.
inline dim3 flat_grid(std::int64_t items, std::int64_t resident_blocks) {
  const std::int64_t blocks = std::min(divide_up(items, flat_threads), resident_blocks);
  return dim3(static_cast<unsigned>(std::max<std::int64_t>(blocks, 1)));
}

// Enqueues a kernel whose threads take items from flat_thread() on in steps of flat_stride().
template <class... Parameters, class... Arguments>
void launch_flat(void (*kernel)(Parameters...), std::int64_t items, Stream& stream,
                 Arguments&&... arguments) {
  const std::int64_t resident_blocks = cnn::cuda::max_resident_blocks(kernel, flat_threads, 0);
  cnn::cuda::launch(kernel, flat_grid(items, resident_blocks), flat_threads, 0, stream,
                    std::forward<Arguments>(arguments)...);
}

// Returns the index of the calling thread in the grid, and the number of threads of the grid.
__device__ inline std::int64_t flat_thread() {
  return static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
}
__device__ inline std::int64_t flat_stride() {
  return static_cast<std::int64_t>(gridDim.x) * blockDim.x;
}

// Grid-stride loop over n elements in packs: calls visit(first element, integral_constant<int,
// width>) for each whole pack of `width` elements, and with a width of 1 for the remaining ones.
template <int width, class Visit>
__device__ void each_pack(std::int64_t n, const Visit& visit) {
  const std::int64_t packs = n / width;
  for (std::int64_t i = flat_thread(); i < packs; i += flat_stride()) {
    visit(i * width, std::integral_constant<int, width>{});
  }
  const std::int64_t rest = packs * width + flat_thread();
  if (width > 1 && rest < n) {  // fewer elements than a block has threads
    visit(rest, std::integral_constant<int, 1>{});
  }
}

// The elements of one access of map_elements(): 16 bytes of the narrower type, at most 8 elements.
template <class From, class To>
inline constexpr int map_width = sizeof(From) <= 2 || sizeof(To) <= 2 ? 8 : 4;

// Writes to[i] = function(from[i]) for n elements; `to` may alias `from`. Each thread keeps two
// loads in flight: because of the possible alias, the compiler may not hoist the second load above
// the first store.
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
  if (rest < n) {  // fewer elements than a block has threads
    write(rest, fetch<1>(from + rest));
  }
}

// Enqueues map_elements() on all elements of `to`; both operands are contiguous.
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

// Returns the spec of a kernel that runs in every floating-point type with images in nhwc; nothing
// for integer operands.
inline std::optional<KernelSpec> describe_floats(const Signature& request) {
  const DataType type = request.in.empty() ? request.out[0].type : request.in[0].type;
  return is_float(type) ? std::optional(in_nhwc(request)) : std::nullopt;
}

}  // namespace cnn::layers::cuda
