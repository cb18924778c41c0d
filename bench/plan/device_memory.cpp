#include "bench/plan/device_memory.h"

#include <algorithm>
#include <initializer_list>
#include <string>

#include "bench/plan/variable_io.h"
#include "bench/ranks/rank_context.h"
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

DeviceMemory device_memory(const Programs& programs, const RankContext& context) {
  const Variables variables = programs.variables();
  const std::size_t io = variable_io_bytes(context.kernels, variables);
  DeviceMemory memory{.variables = variables.bytes(),
                      .host_variables = variables.host_bytes(),
                      .arena = io,
                      .arena_lower_bound = io};
  for (const std::optional<Compiled>* compiled : {&programs.main, &programs.evaluation}) {
    if (*compiled) {
      memory.staged += staged_bytes(*(*compiled)->plan.graph, context.backend);
      memory.arena = std::max(memory.arena, (*compiled)->device_bytes());
      memory.arena_lower_bound =
          std::max(memory.arena_lower_bound, (*compiled)->lower_bound_bytes());
      memory.host = std::max(memory.host, (*compiled)->plan.memory.host_bytes);
    }
  }
  memory.host += variables.host_bytes();
  return memory;
}

std::size_t evaluation_bytes(const Programs& programs, const DeviceMemory& memory) {
  return programs.evaluation
             ? memory.variables + memory.staged + programs.evaluation->device_bytes()
             : 0;
}

std::size_t host_bytes_left(const DeviceMemory& memory, const RankContext& context) {
  if (context.memory.host) {
    return *context.memory.host;
  }
  return context.memory.device - std::min(memory.total(), context.memory.device);
}

bool fits(const DeviceMemory& memory, const RankContext& context) {
  return memory.total() <= context.memory.device && memory.host <= host_bytes_left(memory, context);
}

}  // namespace cnn::bench
