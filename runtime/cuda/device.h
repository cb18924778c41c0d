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
DeviceCount count_devices();

// A device's name and limits, for reports and for keys of stored choices.
struct DeviceFacts {
  std::string name;          // "NVIDIA H200"
  int major = 0, minor = 0;  // compute capability
  int multiprocessors = 0;
  std::size_t memory_bytes = 0;             // of the device, free or not
  int clock_khz = 0, memory_clock_khz = 0;  // highest
  std::string pci_bus_id;                   // "0000:1b:00.0"
  std::string uuid;                         // of the device, or of the MIG instance
};

// Returns the text "8b5e06c6-1234-5678-9abc-def012345678".
std::string uuid_text(const cudaUUID_t& uuid);

std::string driver_version();   // "13.0": the highest CUDA version that the driver supports
std::string runtime_version();  // "13.0": version of the loaded CUDA runtime

// Page-locks host memory, so that devices copy from and to it faster.
void pin(std::span<std::byte> memory);
void unpin(void* memory);

// One NVIDIA GPU. A lane is a CUDA stream, device memory comes from cudaMalloc, host memory is
// pinned. A CUDA graph can record a step.
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

  // Sets the callback of all streams, existing ones too, for waits that may never end, such as for
  // a message of another rank. Must not be called while a thread waits for a stream.
  void on_poll(PollCallback poll) { *poll_ = std::move(poll); }

 private:
  // Makes the device current for the calling thread; almost free if it already is.
  void select() const;

  int ordinal_;
  DeviceFacts facts_;
  std::shared_ptr<DeviceClock> clock_;
  std::shared_ptr<PollCallback> poll_ = std::make_shared<PollCallback>();
};

}  // namespace cnn::cuda
