#include "runtime/cpu/device.h"

#include <algorithm>
#include <cstdlib>
#include <limits>
#include <sys/mman.h>
#include <utility>

#include "runtime/cpu/bus.h"
#include "runtime/cpu/memory.h"
#include "runtime/cpu/stream.h"
#include "runtime/error.h"

namespace cnn {
namespace {

constexpr std::size_t cache_line = 64;
constexpr std::size_t huge_page = std::size_t{2} << 20U;

// Null if there is no memory.
std::byte* allocate_bytes(std::size_t bytes) {
  const std::size_t granule = bytes >= huge_page ? huge_page : cache_line;
  if (bytes > std::numeric_limits<std::size_t>::max() - granule) {
    return nullptr;
  }
  const std::size_t rounded = std::max(granule, (bytes + granule - 1) / granule * granule);
  void* data = std::aligned_alloc(granule, rounded);
  if (data != nullptr && granule == huge_page) {
    // Only advice: without huge pages everything works, a little slower.
    static_cast<void>(madvise(data, rounded, MADV_HUGEPAGE));
  }
  return static_cast<std::byte*>(data);
}

Copier copier(Lane lane, const std::shared_ptr<Bus>& bus, const CopyJitter& jitter) {
  if (lane == Lane::copy_out) {
    return {bus, Direction::out, jitter};
  }
  return lane == Lane::copy_in ? Copier(bus, Direction::in, jitter) : Copier();
}

}  // namespace

CpuDevice::CpuDevice(CpuOptions options)
    : options_(std::move(options)),
      bus_(std::make_shared<Bus>(options_.link)),
      allocated_(std::make_shared<std::atomic<std::size_t>>(0)) {}

std::size_t CpuDevice::memory_bytes() const {
  const std::size_t available = available_memory();
  if (options_.memory_limit == 0) {
    return available;
  }
  return std::min(available, options_.memory_limit - allocated_->load());
}

std::unique_ptr<Stream> CpuDevice::make_stream(Lane lane) {
  std::function<void()> prepare;
  if (options_.on_stream_start) {
    prepare = [start = options_.on_stream_start, lane] { start(lane); };
  }
  const bool caller = options_.compute_on_caller && lane == Lane::compute;
  return std::make_unique<CpuStream>(caller ? Runner::feeder : Runner::own_thread, options_,
                                     std::move(prepare), copier(lane, bus_, options_.copy_jitter));
}

std::unique_ptr<Event> CpuDevice::make_event() { return std::make_unique<CpuEvent>(); }

Buffer CpuDevice::allocate(std::size_t bytes) {
  const std::size_t limit =
      options_.memory_limit == 0 ? std::numeric_limits<std::size_t>::max() : options_.memory_limit;
  std::size_t before = allocated_->load();
  do {
    if (bytes > limit - before) {
      throw DoesNotFit("out of memory: " + std::to_string(bytes) + " bytes asked, " +
                       std::to_string(limit - before) + " of the device's limit of " +
                       std::to_string(limit) + " are left");
    }
  } while (!allocated_->compare_exchange_weak(before, before + bytes));
  std::byte* data = allocate_bytes(bytes);
  if (data == nullptr) {
    *allocated_ -= bytes;
    throw DoesNotFit("out of memory: " + std::to_string(bytes) + " bytes asked");
  }
  return {data, bytes, [counter = allocated_, bytes](std::byte* released) {
            std::free(released);
            *counter -= bytes;
          }};
}

Buffer CpuDevice::allocate_host(std::size_t bytes) {
  std::byte* data = allocate_bytes(bytes);
  if (data == nullptr) {
    throw DoesNotFit("out of host memory: " + std::to_string(bytes) + " bytes asked");
  }
  return {data, bytes, [](std::byte* released) { std::free(released); }};
}

}  // namespace cnn
