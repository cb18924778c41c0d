#include "tests/support/cuda/dnn/engines.h"

#include <algorithm>
#include <cstdlib>

namespace cnn::tests::emulated::dnn {
namespace {

// Checks the fusion patterns that NVIDIA documents: batch norms around a convolution need f16 and
// symmetric padding.
bool is_fused_with_norms(const Graph& graph) {
  const bool begins_with_convolution =
      std::holds_alternative<Convolution>(graph.operations.front());
  return !begins_with_convolution ||
         std::ranges::any_of(graph.operations, [](const Operation& operation) {
           return std::holds_alternative<Statistics>(operation) ||
                  std::holds_alternative<NormBackward>(operation);
         });
}

bool has_uneven_padding(const Graph& graph) {
  return std::ranges::any_of(graph.operations, [](const Operation& operation) {
    const auto* c = std::get_if<Convolution>(&operation);
    return c != nullptr && c->before != c->after;
  });
}

DataType type_of(const Graph& graph) {
  for (const Operation& operation : graph.operations) {
    if (const auto* c = std::get_if<Convolution>(&operation)) {
      return graph.tensors.at(c->w).type;
    }
  }
  return DataType::f32;
}

}  // namespace

std::span<const Engine> engines() {
  static const std::vector<Engine> all{
      {.index = 0, .numerical = {CUDNN_NUMERICAL_NOTE_NONDETERMINISTIC}},
      {.index = 1, .behaviour = {CUDNN_BEHAVIOR_NOTE_RUNTIME_COMPILATION}},
      {.index = 2,
       .numerical = {CUDNN_NUMERICAL_NOTE_TENSOR_CORE},
       .behaviour = {CUDNN_BEHAVIOR_NOTE_SUPPORTS_CUDA_GRAPH_NATIVE_API},
       .workspace = 10'000,
       .tensor_cores = true},
      {.index = 3}};
  return all;
}

const Engine& engine_at(std::int64_t index) {
  require(index >= 0 && index < static_cast<std::int64_t>(engines().size()),
          "there is no engine " + std::to_string(index), CUDNN_STATUS_NOT_SUPPORTED);
  return engines()[static_cast<std::size_t>(index)];
}

std::string why_unsupported(const Engine& engine, const Graph& graph) {
  if (!is_fused_with_norms(graph)) {
    return "";
  }
  if (type_of(graph) != DataType::f16) {
    return "batch norms around a convolution run in f16 only";
  }
  if (has_uneven_padding(graph)) {
    return "batch norms around a convolution take no uneven padding";
  }
  return engine.tensor_cores ? "" : "only an engine with tensor cores runs batch norms";
}

std::string why_refused(const Engine& engine) {
  const char* const set = std::getenv("CNN_EMULATED_REFUSING_ENGINE");
  const std::string refusing = set == nullptr ? "" : set;
  const std::string index = std::to_string(engine.index);
  return refusing == "all" || refusing == index ? "engine " + index + " refuses to run" : "";
}

bool engines_wait() { return std::getenv("CNN_EMULATED_WAITING_ENGINES") != nullptr; }

std::vector<std::int64_t> propose(const Graph& graph, cudnnBackendHeurMode_t mode) {
  require(mode == CUDNN_HEUR_MODE_A || mode == CUDNN_HEUR_MODE_FALLBACK,
          "heuristics of mode " + std::to_string(mode) + " are not emulated",
          CUDNN_STATUS_NOT_SUPPORTED);
  std::vector<std::int64_t> indices;
  for (const Engine& engine : engines()) {
    const bool plain = engine.numerical.empty() && engine.behaviour.empty();
    if ((mode == CUDNN_HEUR_MODE_A || plain) && why_unsupported(engine, graph).empty()) {
      indices.push_back(engine.index);
    }
  }
  return indices;
}

}  // namespace cnn::tests::emulated::dnn
