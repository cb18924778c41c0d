#include "bench/ranks/rank_context.h"

#include <fmt/format.h>

#include "runtime/error.h"

namespace cnn::bench {

RankContext only_rank(const Backend& backend) {
  return {.backend = backend, .memory = backend.memory, .kernels = backend.kernels};
}

std::size_t divisible_bytes(const Backend& backend, const MemoryLimits& memory) {
  const std::size_t host = memory.host.value_or(0);
  return backend.device_exchange != nullptr ? host : memory.device + host;
}

MemoryLimits share_of_memory(const Backend& backend, std::size_t bytes, std::size_t ranks) {
  const std::size_t share = bytes / ranks;
  MemoryLimits memory = backend.memory;
  if (backend.device_exchange != nullptr) {  // each rank has its own device
    memory.host = share;
    return memory;
  }
  if (!memory.host) {
    memory.device = share;
    return memory;
  }
  check(memory.device <= share,
        fmt::format("--device_memory_mb={}: {} ranks share the {} MiB that are free",
                    memory.device >> 20U, ranks, bytes >> 20U));
  memory.host = share - memory.device;
  return memory;
}

}  // namespace cnn::bench
