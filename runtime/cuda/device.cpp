#include "runtime/cuda/device.h"

#include <array>
#include <string_view>
#include <utility>

#include "runtime/cuda/error.h"
#include "runtime/cuda/recording.h"
#include "runtime/cuda/support.h"

namespace cnn::cuda {
namespace {

std::string bus_id_of(int ordinal) {
  std::array<char, 32> text{};
  check(cudaDeviceGetPCIBusId(text.data(), text.size(), ordinal));
  return text.data();
}

DeviceFacts read_facts(int ordinal) {
  cudaDeviceProp properties{};
  check(cudaGetDeviceProperties(&properties, ordinal));
  const auto attribute = [ordinal](cudaDeviceAttr which) {
    int value = 0;
    check(cudaDeviceGetAttribute(&value, which, ordinal));
    return value;
  };
  return {.name = properties.name,
          .major = properties.major,
          .minor = properties.minor,
          .multiprocessors = properties.multiProcessorCount,
          .memory_bytes = properties.totalGlobalMem,
          .clock_khz = attribute(cudaDevAttrClockRate),
          .memory_clock_khz = attribute(cudaDevAttrMemoryClockRate),
          .cache_bytes = attribute(cudaDevAttrL2CacheSize),
          .pci_bus_id = bus_id_of(ordinal),
          .uuid = uuid_text(properties.uuid)};
}

// Compute waits for copies and messages, so their blocks have priority over compute's; side work
// fills the gaps of compute. Lower numbers have higher priority.
int priority_of(Lane lane) {
  int last = 0;
  int first = 0;
  check(cudaDeviceGetStreamPriorityRange(&last, &first));
  switch (lane) {
    case Lane::compute:
      return (first + last) / 2;
    case Lane::side:
    case Lane::disk:
      return last;
    case Lane::copy_out:
    case Lane::copy_in:
    case Lane::communicate:
      return first;
  }
  return last;
}

}  // namespace

DeviceCount count_devices() {
  DeviceCount found;
  const cudaError_t status = cudaGetDeviceCount(&found.devices);
  if (status != cudaSuccess || found.devices == 0) {
    static_cast<void>(cudaGetLastError());
    int driver = 0;
    int runtime = 0;
    static_cast<void>(cudaDriverGetVersion(&driver));
    static_cast<void>(cudaRuntimeGetVersion(&runtime));
    return {.devices = 0, .why_none = why_no_device(status, driver, runtime)};
  }
  return found;
}

std::string uuid_text(const cudaUUID_t& uuid) {
  constexpr std::string_view digits = "0123456789abcdef";
  std::string text;
  for (const char byte : uuid.bytes) {
    if (text.size() == 8 || text.size() == 13 || text.size() == 18 || text.size() == 23) {
      text += '-';
    }
    const auto value = static_cast<unsigned char>(byte);
    text += digits[value / 16];
    text += digits[value % 16];
  }
  return text;
}

std::string driver_version() {
  int version = 0;
  check(cudaDriverGetVersion(&version));
  return version_text(version);
}

std::string runtime_version() {
  int version = 0;
  check(cudaRuntimeGetVersion(&version));
  return version_text(version);
}

void pin(std::span<std::byte> memory) {
  check(cudaHostRegister(memory.data(), memory.size(), cudaHostRegisterPortable));
}

void unpin(void* memory) { static_cast<void>(cudaHostUnregister(memory)); }

CudaDevice::CudaDevice(int ordinal) : ordinal_(ordinal), clock_(std::make_shared<DeviceClock>()) {
  const DeviceCount found = count_devices();
  check(found.devices > 0, "no CUDA device: " + found.why_none);
  check(ordinal >= 0 && ordinal < found.devices, "there is no CUDA device " +
                                                     std::to_string(ordinal) + ", only " +
                                                     std::to_string(found.devices) + " from 0 on");
  select();
  facts_ = read_facts(ordinal);
  const std::string refused = why_unsupported(facts_.name, facts_.major, facts_.minor);
  check(refused.empty(), refused);
  const std::string lacking = why_not_built_for(facts_.major, facts_.minor, built_architectures());
  check(lacking.empty(), facts_.name + ": " + lacking);
}

void CudaDevice::select() const { check(cudaSetDevice(ordinal_)); }

std::size_t CudaDevice::memory_bytes() const {
  select();
  std::size_t available = 0;
  std::size_t total = 0;
  check(cudaMemGetInfo(&available, &total));
  return available;
}

std::unique_ptr<Stream> CudaDevice::make_stream(Lane lane) {
  select();
  return std::make_unique<CudaStream>(priority_of(lane), clock_, poll_);
}

std::unique_ptr<Event> CudaDevice::make_event() {
  select();
  return std::make_unique<CudaEvent>();
}

Buffer CudaDevice::allocate(std::size_t bytes) {
  select();
  void* data = nullptr;
  const cudaError_t status = cudaMalloc(&data, bytes);
  if (status == cudaErrorMemoryAllocation) {
    static_cast<void>(cudaGetLastError());
    throw DoesNotFit("out of memory: " + std::to_string(bytes) + " bytes asked, " +
                     std::to_string(memory_bytes()) + " are free on " + name());
  }
  check(status);
  return {static_cast<std::byte*>(data), bytes,
          [](std::byte* released) { static_cast<void>(cudaFree(released)); }};
}

Buffer CudaDevice::allocate_host(std::size_t bytes) {
  select();
  void* data = nullptr;
  const cudaError_t status = cudaHostAlloc(&data, bytes, cudaHostAllocPortable);
  if (status == cudaErrorMemoryAllocation) {
    static_cast<void>(cudaGetLastError());
    throw DoesNotFit("out of pinned host memory: " + std::to_string(bytes) + " bytes asked");
  }
  check(status);
  return {static_cast<std::byte*>(data), bytes,
          [](std::byte* released) { static_cast<void>(cudaFreeHost(released)); }};
}

std::unique_ptr<Recording> CudaDevice::record(std::span<Stream* const> streams,
                                              const std::function<void()>& enqueue) {
  select();
  return capture(streams, enqueue);
}

}  // namespace cnn::cuda
