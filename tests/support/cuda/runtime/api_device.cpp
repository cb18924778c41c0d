#include <algorithm>
#include <cstdio>
#include <cstring>
#include <map>
#include <string_view>

#include "tests/support/cuda/runtime/calls.h"
#include "tests/support/cuda/runtime/violation.h"

// Devices as the runtime describes them: each is an H100.

namespace cnn::tests::emulated {
namespace {

constexpr int multiprocessors = 132;
constexpr int clock_khz = 1'980'000, memory_clock_khz = 2'619'000;
constexpr int threads_per_multiprocessor = 2048, blocks_per_multiprocessor = 32;
constexpr std::size_t shared_per_multiprocessor = std::size_t{227} << 10U;
constexpr int highest_priority = -5;

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
  constexpr std::string_view name = "NVIDIA H100 80GB HBM3";
  std::ranges::copy(name, properties->name);
  for (int i = 0; i < 16; ++i) {
    properties->uuid.bytes[i] = static_cast<char>(i == 15 ? device : 0x10 + i);
  }
  properties->major = 9;
  properties->minor = 0;
  properties->multiProcessorCount = cnn::tests::emulated::multiprocessors;
  properties->totalGlobalMem = driver().settings.bytes_per_device;
  return call.refused();
}

cudaError_t cudaDeviceGetAttribute(int* value, cudaDeviceAttr attribute, int device) {
  const Call call("cudaDeviceGetAttribute");
  const std::map<cudaDeviceAttr, int> known{
      {cudaDevAttrMultiProcessorCount, cnn::tests::emulated::multiprocessors},
      {cudaDevAttrClockRate, cnn::tests::emulated::clock_khz},
      {cudaDevAttrMemoryClockRate, cnn::tests::emulated::memory_clock_khz}};
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

// As a kernel of 64 registers for each thread would be held.
cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessor(int* blocks, const void* /*kernel*/,
                                                          int threads, std::size_t shared_bytes) {
  namespace emulated = cnn::tests::emulated;
  const Call call("cudaOccupancyMaxActiveBlocksPerMultiprocessor");
  if (threads <= 0) {
    return returned(cudaErrorInvalidValue);
  }
  *blocks = std::min(emulated::threads_per_multiprocessor / 2 / threads,
                     emulated::blocks_per_multiprocessor);
  if (shared_bytes > 0) {
    *blocks =
        std::min(*blocks, static_cast<int>(emulated::shared_per_multiprocessor / shared_bytes));
  }
  return call.refused();
}

}  // extern "C"
