#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>

#include "bench/machine/backend.h"
#include "runtime/device.h"
#include "runtime/kernel.h"

namespace cnn::bench {

// One rank's number, its share of the memory, and its exchange with other ranks. Immutable like the
// backend, which must outlive it.
struct RankContext {
  const Backend& backend;
  // The rank's number, and the number of ranks, among those that exchange gradients: processes,
  // even if --num_gpus divides a process further.
  int rank = 0, ranks = 1;
  MemoryLimits memory;  // the rank's share
  KernelTable kernels;  // the backend's, and kernels that exchange gradients
  // Whether the device exchanges by collective launches of several ranks, as NCCL does: then all
  // ranks replay a step from a recording, or all enqueue it.
  bool collective_exchange = false;
  // Removes the exchange's poll callback from the device when the last copy is destroyed. Null: the
  // device does not poll for an exchange.
  std::shared_ptr<void> device_poll;
  // Allocates memory for variables and steps that other ranks can address. Empty: the device
  // allocates.
  std::function<Buffer(std::size_t)> shared_memory;
  // The word in which the rank publishes its progress for waiting ranks (allreduce/progress.h).
  // Null: no rank reads it.
  std::atomic<std::uint64_t>* progress = nullptr;
};

// Returns the context of a rank that owns the whole backend and exchanges nothing.
RankContext only_rank(const Backend& backend);

// Returns the free bytes that the ranks of a host divide: host memory, including what a processor
// reserves as its device memory. A GPU's memory is not divided.
std::size_t divisible_bytes(const Backend& backend, const MemoryLimits& memory);

// Returns the limits of one of `ranks` ranks that divide `bytes` of host memory; a GPU's memory is
// unchanged. Throws Error if the share is too small for what a processor reserves as its device
// memory.
MemoryLimits share_of_memory(const Backend& backend, std::size_t bytes, std::size_t ranks);

}  // namespace cnn::bench
