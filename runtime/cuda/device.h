#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <utility>

#include "runtime/cuda/stream.h"
#include "runtime/device.h"

namespace cnn::cuda {

// The number of CUDA devices that this process can use. Any failure counts as no device.
struct DeviceCount {
  int devices = 0;
  std::string why_none;  // the runtime's name and text of the failure; empty if there is a device
};
// Returns the count; never throws.
DeviceCount count_devices();

// A device's name and properties, for reports and as part of the keys of the plan cache.
struct DeviceFacts {
  std::string name;          // "NVIDIA H200"
  int major = 0, minor = 0;  // compute capability
  int multiprocessors = 0;
  std::size_t memory_bytes = 0;             // total, whether free or not
  int clock_khz = 0, memory_clock_khz = 0;  // maximum clocks
  std::int64_t cache_bytes = 0;             // of the second-level cache, which is the last one
  std::string pci_bus_id;                   // "0000:1b:00.0"
  std::string uuid;                         // of the device, or of the MIG instance
};

// Returns the text "8b5e06c6-1234-5678-9abc-def012345678".
std::string uuid_text(const cudaUUID_t& uuid);

std::string driver_version();   // "13.0": the highest CUDA version that the driver supports
std::string runtime_version();  // "13.0": version of the loaded CUDA runtime

// Pins (page-locks) host memory, so that copies from and to it run asynchronously at full speed;
// pin() throws Error if the driver refuses.
void pin(std::span<std::byte> memory);
void unpin(void* memory);

// One NVIDIA GPU as a Device: a stream is a CUDA stream, device memory comes from cudaMalloc, host
// memory is pinned, and a recording is a CUDA graph.
class CudaDevice final : public Device {
 public:
  // Throws Error if the device does not exist, or none of our kernels runs on it.
  explicit CudaDevice(int ordinal = 0);

  std::string name() const override { return facts_.name; }
  std::size_t memory_bytes() const override;
  std::unique_ptr<Stream> make_stream(Lane lane) override;
  std::unique_ptr<Event> make_event() override;
  Buffer allocate(std::size_t bytes) override;
  Buffer allocate_host(std::size_t bytes) override;
  std::unique_ptr<Recording> record(std::span<Stream* const> streams,
                                    const std::function<void()>& enqueue) override;

  const DeviceFacts& facts() const { return facts_; }

  // Sets the poll callback of all streams, including existing ones. It can end waits that would
  // never end, such as for a message of a lost rank. Must not be called while a thread waits for a
  // stream.
  void on_poll(PollCallback poll) { *poll_ = std::move(poll); }

 private:
  // Makes the device current for the calling thread; costs almost nothing if it already is.
  void select() const;

  int ordinal_;
  DeviceFacts facts_;
  std::shared_ptr<DeviceClock> clock_;
  std::shared_ptr<PollCallback> poll_ = std::make_shared<PollCallback>();
};

}  // namespace cnn::cuda
