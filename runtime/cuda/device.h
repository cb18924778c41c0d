#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <utility>

#include "runtime/cuda/stream.h"
#include "runtime/device.h"

namespace cnn::cuda {

// How many CUDA devices this process can use. Whatever fails counts as none.
struct DeviceCount {
  int devices = 0;
  std::string why_none;  // the runtime's name and text of what failed; empty if there is a device
};
DeviceCount count_devices();

// A device's name and limits, for reports and for keys of stored choices.
struct DeviceFacts {
  std::string name;          // "NVIDIA H200"
  int major = 0, minor = 0;  // compute capability
  int multiprocessors = 0;
  std::size_t memory_bytes = 0;             // of the device, free or not
  int clock_khz = 0, memory_clock_khz = 0;  // highest
  std::string pci_bus_id;                   // "0000:1b:00.0"
  std::string uuid;                         // of the device, or of the instance (MIG) that it is
};

// "8b5e06c6-1234-5678-9abc-def012345678"
std::string uuid_text(const cudaUUID_t& uuid);

std::string driver_version();   // "13.0": the highest CUDA version that the driver takes
std::string runtime_version();  // "13.0": of the CUDA runtime that runs

// Devices copy faster from and to host memory that is pinned.
void pin(std::span<std::byte> memory);
void unpin(void* memory);

// One NVIDIA GPU. Lanes are streams, memory is plain cudaMalloc, host memory is pinned. A step can
// be recorded into a CUDA graph.
class CudaDevice final : public Device {
 public:
  // Throws Error if there is no such device, or none of our kernels runs on it.
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

  // For all its streams, those that are there already too: a device may wait for what never comes,
  // such as another's message. Not while a stream is waited for.
  void on_poll(Look look) { *look_ = std::move(look); }

 private:
  void select() const;  // for the calling thread; costs next to nothing if it is already

  int ordinal_;
  DeviceFacts facts_;
  std::shared_ptr<DeviceClock> clock_;
  std::shared_ptr<Look> look_ = std::make_shared<Look>();
};

}  // namespace cnn::cuda
