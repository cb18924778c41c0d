#include <algorithm>
#include <cstring>
#include <memory>
#include <utility>
#include <vector>

#include "tests/support/cuda/runtime/calls.h"
#include "tests/support/cuda/runtime/violation.h"

// Memory: taking it, giving it back, copying it.

namespace cnn::tests::emulated {
namespace {

bool is_attached(const Block& block) {
  return std::ranges::any_of(driver().attached,
                             [&](const void* begin) { return block.contains(begin); });
}

cudaError_t release(void* data, MemoryKind kind, const std::string& name) {
  const Call call(name);
  if (data == nullptr) {
    return cudaSuccess;
  }
  const Block* block = driver().memory.find(data);
  if (block != nullptr && driver().is_used(*block)) {
    violate(name + " of " + driver().memory.name_of(data) + ", which queued work uses");
    return returned(cudaErrorInvalidValue);
  }
  if (block != nullptr && is_attached(*block)) {
    violate(name + " of " + driver().memory.name_of(data) + ", which a communicator knows of");
    return returned(cudaErrorInvalidValue);
  }
  if (call.refused() != cudaSuccess) {
    return call.refused();
  }
  if (const cudaError_t refused = refuse_in_capture(name); refused != cudaSuccess) {
    return refused;
  }
  if (!driver().memory.release(static_cast<std::byte*>(data), kind)) {
    violate(name + " of " + driver().memory.name_of(data) + ", which is no such block's beginning");
    return returned(cudaErrorInvalidValue);
  }
  return cudaSuccess;
}

enum class Side { device, pinned, pageable };

// Finds the kind of memory that contains a range. A range outside every block is a violation.
bool find_side(const std::byte* at, std::size_t bytes, Side& side) {
  const Memory& memory = driver().memory;
  const Block* block = memory.find(at);
  if (block == nullptr) {
    side = Side::pageable;
    if (memory.range_of(at) >= 0) {
      violate("cudaMemcpyAsync was given " + memory.name_of(at));
      return false;
    }
    return true;
  }
  side = block->kind == MemoryKind::device ? Side::device : Side::pinned;
  if (at + bytes > block->data + block->bytes) {
    violate("cudaMemcpyAsync of " + std::to_string(bytes) + " bytes leaves the block of " +
            memory.name_of(at));
    return false;
  }
  return true;
}

// Memory that is not pinned is copied out at once, and into before the call returns.
cudaError_t copy(std::byte* to, const std::byte* from, std::size_t bytes, CUstream_st& stream,
                 Call& call) {
  Side to_side{}, from_side{};
  if (!find_side(to, bytes, to_side) || !find_side(from, bytes, from_side)) {
    return returned(cudaErrorInvalidValue);
  }
  Work work{.name = "a copy of " + std::to_string(bytes) + " bytes",
            .uses = {to, to + bytes - 1, from, from + bytes - 1}};
  if (from_side == Side::pageable && stream.capture == nullptr) {
    auto staged = std::make_shared<std::vector<std::byte>>(from, from + bytes);
    work.body = [=] { std::memcpy(to, staged->data(), bytes); };
  } else {
    work.body = [=] { std::memcpy(to, from, bytes); };
  }
  const bool wait = to_side == Side::pageable && stream.capture == nullptr;
  const EventState done = std::make_shared<Moment>();
  work.done = done;
  driver().enqueue(stream, std::move(work));
  if (wait) {
    driver().lock.changed.wait(call.lock(), [&] { return done->reached; });
  }
  return returned(sticky_error());
}

}  // namespace
}  // namespace cnn::tests::emulated

using cnn::tests::emulated::Call;
using cnn::tests::emulated::driver;
using cnn::tests::emulated::MemoryKind;
using cnn::tests::emulated::returned;

extern "C" {

cudaError_t cudaMalloc(void** data, std::size_t bytes) {
  const Call call("cudaMalloc");
  if (call.refused() != cudaSuccess) {
    return call.refused();
  }
  if (const cudaError_t refused = cnn::tests::emulated::refuse_in_capture("cudaMalloc");
      refused != cudaSuccess) {
    return refused;
  }
  *data = bytes == 0 ? nullptr
                     : driver().memory.allocate(cnn::tests::emulated::current_device(), bytes);
  return bytes == 0 || *data != nullptr ? cudaSuccess : returned(cudaErrorMemoryAllocation);
}

cudaError_t cudaFree(void* data) {
  return cnn::tests::emulated::release(data, MemoryKind::device, "cudaFree");
}

cudaError_t cudaHostAlloc(void** data, std::size_t bytes, unsigned /*flags*/) {
  const Call call("cudaHostAlloc");
  if (call.refused() != cudaSuccess) {
    return call.refused();
  }
  if (const cudaError_t refused = cnn::tests::emulated::refuse_in_capture("cudaHostAlloc");
      refused != cudaSuccess) {
    return refused;
  }
  *data = bytes == 0 ? nullptr : driver().memory.pin(bytes);
  return cudaSuccess;
}

cudaError_t cudaFreeHost(void* data) {
  return cnn::tests::emulated::release(data, MemoryKind::pinned, "cudaFreeHost");
}

cudaError_t cudaHostRegister(void* data, std::size_t bytes, unsigned /*flags*/) {
  const Call call("cudaHostRegister");
  if (call.refused() != cudaSuccess) {
    return call.refused();
  }
  if (const cudaError_t refused = cnn::tests::emulated::refuse_in_capture("cudaHostRegister");
      refused != cudaSuccess) {
    return refused;
  }
  if (data == nullptr || bytes == 0) {
    return returned(cudaErrorInvalidValue);
  }
  return driver().memory.add_registered(static_cast<std::byte*>(data), bytes)
             ? cudaSuccess
             : returned(cudaErrorHostMemoryAlreadyRegistered);
}

cudaError_t cudaHostUnregister(void* data) {
  return cnn::tests::emulated::release(data, MemoryKind::registered, "cudaHostUnregister");
}

cudaError_t cudaMemGetInfo(std::size_t* available, std::size_t* total) {
  const Call call("cudaMemGetInfo");
  *available = driver().memory.free_bytes(cnn::tests::emulated::current_device());
  *total = driver().memory.bytes_per_device();
  return call.refused();
}

cudaError_t cudaMemcpyAsync(void* to, const void* from, std::size_t bytes, cudaMemcpyKind kind,
                            cudaStream_t stream) {
  Call call("cudaMemcpyAsync");
  if (call.refused() != cudaSuccess || bytes == 0) {
    return call.refused();
  }
  if (kind != cudaMemcpyDefault) {
    cnn::tests::emulated::violate("the emulation copies with cudaMemcpyDefault only");
    return returned(cudaErrorInvalidValue);
  }
  if (!cnn::tests::emulated::is_alive(stream, "cudaMemcpyAsync")) {
    return returned(cudaErrorInvalidResourceHandle);
  }
  return cnn::tests::emulated::copy(static_cast<std::byte*>(to),
                                    static_cast<const std::byte*>(from), bytes, *stream, call);
}

}  // extern "C"
