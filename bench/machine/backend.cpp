#include "bench/machine/backend.h"

#include <algorithm>
#include <fmt/format.h>

#include "bench/machine/simulated_backend.h"
#include "runtime/error.h"

namespace cnn::bench {

std::string why_missing(const BackendKind& kind) {
  return kind.missing == nullptr ? std::string() : kind.missing();
}

const BackendKind* find_backend(std::span<const BackendKind> kinds, std::string_view device) {
  const auto found = std::ranges::find(kinds, device, &BackendKind::device);
  return found == kinds.end() ? nullptr : &*found;
}

std::size_t free_bytes(const Backend& backend) {
  const std::size_t host = backend.host_memory_limit.value_or(0);
  return backend.device_exchange != nullptr ? host : backend.memory_limit + host;
}

void take_part_of_memory(Backend& backend, std::size_t bytes, std::size_t ranks) {
  const std::size_t part = bytes / ranks;
  if (backend.device_exchange != nullptr) {  // each has a device
    backend.host_memory_limit = part;
    return;
  }
  if (!backend.host_memory_limit) {
    backend.memory_limit = part;
    return;
  }
  check(backend.memory_limit <= part,
        fmt::format("--device_memory_mb={}: {} ranks share the {} MiB that are free",
                    backend.memory_limit >> 20U, ranks, bytes >> 20U));
  backend.host_memory_limit = part - backend.memory_limit;
}

Backend make_backend(const Config& config, std::span<const BackendKind> kinds) {
  if (config.gpu.simulate) {
    return simulated_backend(config, find_backend(kinds, word_of(DeviceKind::gpu)));
  }
  const std::string device(word_of(config.device));
  const BackendKind* kind = find_backend(kinds, device);
  if (kind == nullptr) {
    throw Error(fmt::format("--device={0}: this build has no backend for {0}", device));
  }
  if (const std::string missing = why_missing(*kind); !missing.empty()) {
    throw Error(fmt::format("--device={}: {}", device, missing));
  }
  Backend backend = kind->make(config);
  backend.record_steps = config.gpu.graph;
  if (config.lms.enabled && config.lms.verify) {
    backend.verify_steps = true;
    backend.notes.emplace_back(
        "--lms_verify: bytes that are free are filled with NaNs, what comes back from the host is "
        "compared with what left; times are not those of a normal run");
  }
  if (config.gpu.sync_each_kernel && config.device == DeviceKind::gpu) {
    backend.wait_for_each_step = true;
    backend.notes.emplace_back(
        "--sync_each_kernel: every kernel and copy is waited for, so that an error names it; times "
        "are not those of a normal run");
  }
  return backend;
}

}  // namespace cnn::bench
