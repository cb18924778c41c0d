#include <algorithm>
#include <cstring>
#include <map>
#include <mutex>
#include <optional>
#include <utility>

#include "tests/support/cuda/runtime/address_check.h"
#include "tests/support/cuda/runtime/calls.h"
#include "tests/support/cuda/runtime/kernel_table.h"
#include "tests/support/cuda/runtime/kernels.h"
#include "tests/support/cuda/runtime/violation.h"
#include "tests/support/grid/grid.h"

// Implements kernel launches, which run on the emulated grid.

namespace cnn::tests::emulated {
namespace {

struct Kernel {
  Bind bind;
  std::size_t shared_bytes = 0;  // the most that a launch may request; 0 means the usual limit
};

struct KernelTable {
  std::mutex mutex;
  std::map<const void*, Kernel> rows;
};

// The process has one table, like the table that nvcc puts into a program's image.
KernelTable& table() {
  static KernelTable only;
  return only;
}

std::optional<Kernel> find_kernel(const void* entry) {
  const std::scoped_lock lock(table().mutex);
  const auto found = table().rows.find(entry);
  return found == table().rows.end() ? std::nullopt : std::optional(found->second);
}

std::string text_of(dim3 extent) {
  return std::to_string(extent.x) + " x " + std::to_string(extent.y) + " x " +
         std::to_string(extent.z);
}

// Every launch has another order of blocks and threads. The forward order is left out: it also
// detects races in global memory, which takes much longer and which the grid's tests cover.
grid::Order next_order(unsigned launches) {
  return launches % 3 == 0 ? grid::Order{.kind = grid::Order::Kind::reverse}
                           : grid::Order{.kind = grid::Order::Kind::shuffled, .seed = launches};
}

bool is_possible(dim3 grid, dim3 block, std::size_t shared_bytes, const Kernel& kernel) {
  const Description& machine = driver().settings.description;
  const std::size_t threads = std::size_t{block.x} * block.y * block.z;
  return threads > 0 && threads <= static_cast<std::size_t>(machine.threads_per_block) &&
         block.z <= 64 && grid.x > 0 && grid.y > 0 && grid.z > 0 && grid.y <= 65535 &&
         grid.z <= 65535 && shared_bytes <= std::max(kernel.shared_bytes, machine.shared_bytes);
}

}  // namespace

void add_kernel(const void* entry, const Bind& bind) {
  const std::scoped_lock lock(table().mutex);
  table().rows.try_emplace(entry, Kernel{.bind = bind});
}

void remove_kernels() {
  const std::scoped_lock lock(table().mutex);
  table().rows.clear();
}

void append_words(const void* parameter, std::size_t bytes, std::vector<void*>& words) {
  for (std::size_t at = 0; at + sizeof(void*) <= bytes; at += sizeof(void*)) {
    void* word = nullptr;
    std::memcpy(&word, static_cast<const std::byte*>(parameter) + at, sizeof(word));
    words.push_back(word);
  }
}

}  // namespace cnn::tests::emulated

using cnn::tests::emulated::Call;
using cnn::tests::emulated::driver;
using cnn::tests::emulated::returned;

extern "C" {

cudaError_t cudaFuncSetAttribute(const void* entry, cudaFuncAttribute attribute, int value) {
  namespace emulated = cnn::tests::emulated;
  const Call call("cudaFuncSetAttribute");
  const std::scoped_lock lock(emulated::table().mutex);
  const auto found = emulated::table().rows.find(entry);
  if (found == emulated::table().rows.end()) {
    return returned(cudaErrorInvalidDeviceFunction);
  }
  if (attribute != cudaFuncAttributeMaxDynamicSharedMemorySize || value < 0 ||
      static_cast<std::size_t>(value) > driver().settings.description.largest_shared_bytes) {
    return returned(cudaErrorInvalidValue);
  }
  found->second.shared_bytes = static_cast<std::size_t>(value);
  return call.refused();
}

// NOLINTNEXTLINE(readability-function-size): the parameters are the runtime's
cudaError_t cudaLaunchKernel(const void* entry, dim3 grid, dim3 block, void** parameters,
                             std::size_t shared_bytes, cudaStream_t stream) {
  namespace emulated = cnn::tests::emulated;
  const Call call("cudaLaunchKernel");
  if (call.refused() != cudaSuccess) {
    return call.refused();
  }
  const auto kernel = emulated::find_kernel(entry);
  if (!kernel) {
    return returned(cudaErrorInvalidDeviceFunction);
  }
  if (!emulated::is_alive(stream, "cudaLaunchKernel")) {
    return returned(cudaErrorInvalidResourceHandle);
  }
  if (stream->device != emulated::current_device()) {
    emulated::violate("a kernel was launched on a stream of device " +
                      std::to_string(stream->device) + " while device " +
                      std::to_string(emulated::current_device()) + " was the current one");
    return returned(cudaErrorInvalidResourceHandle);
  }
  if (!emulated::is_possible(grid, block, shared_bytes, *kernel)) {
    return returned(cudaErrorInvalidValue);
  }
  const emulated::BoundKernel bound = kernel->bind(parameters);
  cnn::tests::grid::Launch launch{.grid = {grid.x, grid.y, grid.z},
                                  .block = {block.x, block.y, block.z},
                                  .shared_bytes = shared_bytes,
                                  .parameter_bytes = bound.parameter_bytes,
                                  .order = emulated::next_order(driver().launches++)};
  driver().enqueue(
      *stream,
      {.name = "a kernel of " + emulated::text_of(grid) + " blocks of " + emulated::text_of(block),
       .body =
           [launch, bound, device = stream->device] {
             driver().begin_kernel(device);
             // A copy on this stack, which kernels may touch.
             const std::function<void()> thread = bound.thread;
             const emulated::CheckedAddresses checked(
                 device, {static_cast<const std::byte*>(bound.values.get()), bound.value_bytes});
             cnn::tests::grid::run(launch, thread);
           },
       .uses = {bound.words.begin(), bound.words.end()}});
  return cudaSuccess;
}

}  // extern "C"
