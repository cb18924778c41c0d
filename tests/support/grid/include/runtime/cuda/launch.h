#pragma once

#include <cstddef>
#include <cstdint>
#include <tuple>
#include <utility>

#include "runtime/device.h"
#include "tests/support/grid/device_language.h"
#include "tests/support/grid/grid.h"

// Stands in for runtime/cuda/launch.h when kernels run on the emulated grid alone: a launch runs at
// once on the calling thread, whatever the stream.
namespace cnn::cuda {

inline constexpr std::size_t default_shared_bytes = 48U << 10U;

template <class... Parameters>
std::int64_t max_resident_blocks(void (* /*kernel*/)(Parameters...), int /*threads*/,
                                 std::size_t /*shared_bytes*/) {
  return 528;  // more than there is work for, but where a test has many rows
}

// NOLINTNEXTLINE(readability-function-size): takes what a launch needs, as the real one
template <class... Parameters, class... Arguments>
void launch(void (*kernel)(Parameters...), dim3 grid, dim3 block, std::size_t shared_bytes,
            Stream& stream, Arguments&&... arguments) {
  const auto values = std::tuple<Parameters...>(std::forward<Arguments>(arguments)...);
  tests::grid::run({.grid = {grid.x, grid.y, grid.z},
                    .block = {block.x, block.y, block.z},
                    .shared_bytes = shared_bytes,
                    .parameter_bytes = (std::size_t{0} + ... + sizeof(Parameters)),
                    .order = tests::grid::order_of(stream)},
                   [&] { std::apply(kernel, values); });
}

}  // namespace cnn::cuda
