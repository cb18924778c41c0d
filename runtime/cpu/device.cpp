#include "runtime/cpu/device.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "runtime/cpu/bus.h"
#include "runtime/cpu/memory.h"
#include "runtime/cpu/pages.h"
#include "runtime/cpu/stream.h"
#include "runtime/error.h"
#include "runtime/resource_limits.h"

namespace cnn {
namespace {

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
  HostBytes memory = allocate_pages(bytes);
  if (memory.data == nullptr) {
    *allocated_ -= bytes;
    throw DoesNotFit("out of memory: " + std::to_string(bytes) + " bytes asked" +
                     memory_limit_text());
  }
  return {memory.data, bytes,
          [counter = allocated_, bytes, release = std::move(memory.release)](std::byte* released) {
            release(released);
            *counter -= bytes;
          }};
}

Buffer CpuDevice::allocate_host(std::size_t bytes) {
  HostBytes memory = allocate_pages(bytes);
  if (memory.data == nullptr) {
    throw DoesNotFit("out of host memory: " + std::to_string(bytes) + " bytes asked" +
                     memory_limit_text());
  }
  return {memory.data, bytes, std::move(memory.release)};
}

}  // namespace cnn
