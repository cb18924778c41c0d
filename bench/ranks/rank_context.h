#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>

#include "bench/machine/backend.h"
#include "runtime/device.h"
#include "runtime/kernel.h"

namespace cnn::bench {

// The place of one rank in a run: its number, its share of the memory, and its exchange with the
// others. Like the backend, which must outlive it, it does not change once it is made.
struct RankContext {
  const Backend& backend;
  // The rank's number among those that exchange gradients, and how many there are: of processes
  // where --num_gpus divides a process again.
  int rank = 0, ranks = 1;
  MemoryLimits memory;  // the rank's share
  KernelTable kernels;  // the backend's, and those that exchange gradients
  // Allocates memory for variables and steps that other ranks see. Empty: the device allocates.
  std::function<Buffer(std::size_t)> shared_memory;
  // Where the rank writes how far it is, for those who wait for it (allreduce/progress.h). Null:
  // nobody reads it.
  std::atomic<std::uint64_t>* progress = nullptr;
};

// Returns the context of a rank that has the whole backend for itself and exchanges nothing.
RankContext only_rank(const Backend& backend);

// Returns the free bytes that the ranks of a machine divide: the host's memory, and with it the
// memory that a processor reserves to play a device. A GPU's own memory is not divided.
std::size_t divisible_bytes(const Backend& backend, const MemoryLimits& memory);

// Returns the limits of one of `ranks` ranks that divide `bytes` of the host's memory; a GPU's
// memory stays as large. Throws Error where the share is too little for what a processor reserves
// to play a device.
MemoryLimits share_of_memory(const Backend& backend, std::size_t bytes, std::size_t ranks);

}  // namespace cnn::bench
