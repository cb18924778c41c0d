#include "bench/run/device_memory.h"

#include <algorithm>
#include <initializer_list>

#include "bench/run/variable_io.h"

namespace cnn::bench {

Variables Programs::variables() const {
  const Graph* more = main && evaluation ? evaluation->plan.graph.get() : nullptr;
  return Variables(*(main ? main : evaluation).value().plan.graph, more);
}

DeviceMemory device_memory(const Programs& programs, const Backend& backend) {
  const Variables variables = programs.variables();
  const std::size_t io = variable_io_bytes(backend.kernels, variables);
  DeviceMemory memory{.variables = variables.bytes(), .arena = io, .arena_lower_bound = io};
  for (const std::optional<Compiled>* compiled : {&programs.main, &programs.evaluation}) {
    if (*compiled) {
      memory.arena = std::max(memory.arena, (*compiled)->device_bytes());
      memory.arena_lower_bound =
          std::max(memory.arena_lower_bound, (*compiled)->lower_bound_bytes());
      memory.host = std::max(memory.host, (*compiled)->plan.memory.host_bytes);
    }
  }
  return memory;
}

std::size_t host_bytes_left(const DeviceMemory& memory, const Backend& backend) {
  if (backend.host_memory_limit) {
    return *backend.host_memory_limit;
  }
  return backend.memory_limit - std::min(memory.total(), backend.memory_limit);
}

bool fits(const DeviceMemory& memory, const Backend& backend) {
  return memory.total() <= backend.memory_limit && memory.host <= host_bytes_left(memory, backend);
}

}  // namespace cnn::bench
