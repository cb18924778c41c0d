#include "runtime/cuda/occupancy.h"

#include <cuda_runtime_api.h>

#include "runtime/cuda/device.h"
#include "runtime/cuda/error.h"

namespace cnn::cuda {
namespace {

constexpr std::int64_t blocks_of_h100 = 132 * 4;

}  // namespace

std::int64_t max_resident_blocks(const void* entry, int threads, std::size_t shared_bytes) {
  static const bool has_device = count_devices().devices > 0;  // failing drivers are slow
  if (!has_device) {
    return blocks_of_h100;
  }
  int device = 0;
  int multiprocessors = 0;
  int blocks = 0;
  check(cudaGetDevice(&device));
  check(cudaDeviceGetAttribute(&multiprocessors, cudaDevAttrMultiProcessorCount, device));
  check(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, entry, threads, shared_bytes));
  return std::int64_t{multiprocessors} * blocks;
}

}  // namespace cnn::cuda
