#include <algorithm>
#include <cstdio>
#include <cstring>
#include <map>
#include <string>

#include "tests/support/cuda/runtime/calls.h"
#include "tests/support/cuda/runtime/violation.h"

// Implements the device functions. Each device is the machine of the settings, by default an H100.

namespace cnn::tests::emulated {
namespace {

constexpr int highest_priority = -5;  // of an H100; machine profiles do not contain it
// assumed, because our kernels' real numbers are unknown here.
constexpr int registers_of_a_usual_thread = 64;

const Description& description() { return driver().settings.description; }

bool is_device(int ordinal) { return ordinal >= 0 && ordinal < driver().settings.devices; }

}  // namespace
}  // namespace cnn::tests::emulated

using cnn::tests::emulated::Call;
using cnn::tests::emulated::driver;
using cnn::tests::emulated::returned;

extern "C" {

cudaError_t cudaGetDeviceCount(int* count) {
  *count = driver().settings.devices;
  return *count > 0 ? cudaSuccess : returned(cudaErrorNoDevice);
}

cudaError_t cudaGetDevice(int* device) {
  const Call call("cudaGetDevice");
  *device = cnn::tests::emulated::current_device();
  return call.refused();
}

cudaError_t cudaSetDevice(int device) {
  const Call call("cudaSetDevice");
  if (!cnn::tests::emulated::is_device(device)) {
    return returned(cudaErrorInvalidDevice);
  }
  cnn::tests::emulated::set_current_device(device);
  return returned(cnn::tests::emulated::sticky_error());
}

cudaError_t cudaGetDeviceProperties(cudaDeviceProp* properties, int device) {
  const Call call("cudaGetDeviceProperties");
  if (!cnn::tests::emulated::is_device(device)) {
    return returned(cudaErrorInvalidDevice);
  }
  *properties = {};
  const cnn::tests::emulated::Description& machine = cnn::tests::emulated::description();
  machine.name.copy(properties->name, sizeof(properties->name) - 1);
  for (int i = 0; i < 16; ++i) {
    properties->uuid.bytes[i] = static_cast<char>(i == 15 ? device : 0x10 + i);
  }
  properties->major = machine.major;
  properties->minor = machine.minor;
  properties->multiProcessorCount = machine.multiprocessors;
  properties->totalGlobalMem = driver().settings.bytes_per_device;
  return call.refused();
}

cudaError_t cudaDeviceGetAttribute(int* value, cudaDeviceAttr attribute, int device) {
  const Call call("cudaDeviceGetAttribute");
  const cnn::tests::emulated::Description& machine = cnn::tests::emulated::description();
  const std::map<cudaDeviceAttr, int> known{
      {cudaDevAttrMultiProcessorCount, machine.multiprocessors},
      {cudaDevAttrClockRate, machine.clock_khz},
      {cudaDevAttrMemoryClockRate, machine.memory_clock_khz},
      {cudaDevAttrL2CacheSize, machine.cache_bytes}};
  const auto found = known.find(attribute);
  if (!cnn::tests::emulated::is_device(device)) {
    return returned(cudaErrorInvalidDevice);
  }
  if (found == known.end()) {
    cnn::tests::emulated::violate("the emulated device has no attribute " +
                                  std::to_string(attribute));
    return returned(cudaErrorInvalidValue);
  }
  *value = found->second;
  return call.refused();
}

cudaError_t cudaDeviceGetPCIBusId(char* text, int length, int device) {
  const Call call("cudaDeviceGetPCIBusId");
  if (!cnn::tests::emulated::is_device(device)) {
    return returned(cudaErrorInvalidDevice);
  }
  const int written = std::snprintf(text, static_cast<std::size_t>(length), "0000:%02x:00.0",
                                    static_cast<unsigned>(0x1b + device));
  return written < length ? call.refused() : returned(cudaErrorInvalidValue);
}

cudaError_t cudaDeviceGetStreamPriorityRange(int* least, int* greatest) {
  const Call call("cudaDeviceGetStreamPriorityRange");
  *least = 0;
  *greatest = cnn::tests::emulated::highest_priority;
  return call.refused();
}

cudaError_t cudaDriverGetVersion(int* version) {
  *version = CUDART_VERSION;
  return cudaSuccess;
}

cudaError_t cudaRuntimeGetVersion(int* version) {
  *version = CUDART_VERSION;
  return cudaSuccess;
}

// Computes the occupancy of a kernel with the usual number of registers per thread.
cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessor(int* blocks, const void* /*kernel*/,
                                                          int threads, std::size_t shared_bytes) {
  namespace emulated = cnn::tests::emulated;
  const Call call("cudaOccupancyMaxActiveBlocksPerMultiprocessor");
  if (threads <= 0) {
    return returned(cudaErrorInvalidValue);
  }
  const emulated::Description& machine = emulated::description();
  const int held =
      std::min(machine.threads_per_multiprocessor,
               machine.registers_per_multiprocessor / emulated::registers_of_a_usual_thread);
  *blocks = std::min(held / threads, machine.blocks_per_multiprocessor);
  if (shared_bytes > 0) {
    *blocks = std::min(*blocks, static_cast<int>(machine.largest_shared_bytes / shared_bytes));
  }
  return call.refused();
}

}  // extern "C"
