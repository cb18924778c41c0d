#include "bench/plan/device_memory.h"

#include <algorithm>
#include <initializer_list>
#include <string>

#include "bench/plan/variable_io.h"
#include "runtime/input_stage.h"

namespace cnn::bench {

Variables Programs::variables() const {
  const Graph* more = main && evaluation ? evaluation->plan.graph.get() : nullptr;
  return Variables(*(main ? main : evaluation).value().plan.graph, more);
}

std::vector<std::size_t> staged_inputs(const Graph& graph, const Backend& backend) {
  std::vector<std::size_t> found;
  bool real = false;
  for (std::size_t i = 0; i < graph.inputs().size(); ++i) {
    const std::string& name = graph.info(graph.inputs()[i]).name;
    real = real || name == "images";
    if (name == "images" || name == "labels") {
      found.push_back(i);
    }
  }
  return real && backend.has_own_memory() ? found : std::vector<std::size_t>();
}

std::size_t staged_bytes(const Graph& graph, const Backend& backend) {
  std::vector<TensorDesc> inputs;
  for (const std::size_t input : staged_inputs(graph, backend)) {
    inputs.push_back(graph.info(graph.inputs()[input]).desc);
  }
  return InputStage::bytes_for(inputs);
}

DeviceMemory device_memory(const Programs& programs, const Backend& backend) {
  const Variables variables = programs.variables();
  const std::size_t io = variable_io_bytes(backend.kernels, variables);
  DeviceMemory memory{.variables = variables.bytes(), .arena = io, .arena_lower_bound = io};
  for (const std::optional<Compiled>* compiled : {&programs.main, &programs.evaluation}) {
    if (*compiled) {
      memory.staged += staged_bytes(*(*compiled)->plan.graph, backend);
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
