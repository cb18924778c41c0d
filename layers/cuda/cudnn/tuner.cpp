#include "layers/cuda/cudnn/tuner.h"

#include <algorithm>
#include <optional>
#include <string>
#include <utility>

#include "runtime/cuda/stream.h"
#include "runtime/error.h"

namespace cnn::layers::cuda {

Tuner::Tuner(Device& device, cudnnHandle_t handle) : timer_(device), handle_(handle) {}

double Tuner::seconds_of(const Plan& plan, std::span<void* const> pointers, std::byte* workspace) {
  check_cudnn(cudnnSetStream(handle_, cnn::cuda::native(timer_.stream())), "change its stream");
  Arguments arguments;
  return timer_.seconds_of([&] { plan.run(handle_, arguments, pointers, workspace); });
}

std::optional<Tuner::Memory> Tuner::memory_of(const OperationGraph& graph,
                                              std::size_t workspace) try {
  std::vector<TensorDesc> stored;
  std::size_t all = workspace;
  for (const OperationGraph::Id id : graph.in_memory()) {
    const OperationGraph::Tensor& tensor = graph.tensor(id);
    stored.push_back({.shape = tensor.shape,
                      .type = tensor.type,
                      .layout = Layout::nhwc,
                      .pitch = tensor.pitch});
    all += stored.back().extent();
  }
  if (all > timer_.device().memory_bytes()) {
    return std::nullopt;
  }
  std::vector<Buffer> operands;
  operands.reserve(stored.size());
  for (const TensorDesc& desc : stored) {
    operands.push_back(timer_.filled(desc.extent(), desc.type));
  }
  return Memory{.operands = std::move(operands), .workspace = timer_.device().allocate(workspace)};
} catch (const DoesNotFit&) {  // the driver rounds allocations up, and loads code of engines
  return std::nullopt;
}

std::optional<Tuner::Timed> Tuner::fastest(const NativeGraph& graph,
                                           std::span<const Choice> choices) {
  std::size_t largest = 64;
  for (const Choice& choice : choices) {
    largest = std::max(largest, choice.workspace);
  }
  const auto memory = memory_of(graph.operations(), largest);
  if (!memory) {
    return std::nullopt;
  }
  std::vector<void*> pointers;
  for (const Buffer& operand : memory->operands) {
    pointers.push_back(operand.data());
  }
  std::optional<Timed> best;
  std::string refused;
  for (const Choice& choice : choices) {
    try {
      const Plan plan(graph, choice);
      const double seconds = seconds_of(plan, pointers, memory->workspace.data());
      if (!best || seconds < best->seconds) {
        best = Timed{choice, seconds};
      }
    } catch (const Error& error) {  // an engine may fail to run although it has a plan
      refused = error.what();
    }
  }
  check(best.has_value(), "none of " + std::to_string(choices.size()) +
                              " engines of cuDNN ran while tuning; the last said: " + refused);
  return best;
}

}  // namespace cnn::layers::cuda
