#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "layers/cuda/fused_graph.h"
#include "layers/fused_conv.h"
#include "runtime/kernel.h"

// The steps that compute a fused convolution node: an engine of a library, which reads and writes
// operands of the node and parts of its workspace, and a conversion of weight gradients to f32. The
// interface is independent of the library that provides the engine.
namespace cnn::layers::cuda {

// A fused convolution ready to run.
class FusedEngine {
 public:
  virtual ~FusedEngine() = default;
  // Enqueues the engine. tensors: the addresses of the graph's stored tensors, in their order.
  virtual void run(Stream& stream, std::span<void* const> tensors, std::byte* workspace) = 0;
};

// Returns the workspace of the engine for a graph in bytes, or nothing if there is no engine.
using FindFusedWorkspace = std::function<std::optional<std::size_t>(const FusedGraph&)>;

// The memory of one of a graph's tensors: an operand of the node, or a part of its workspace.
struct Source {
  enum class From : std::uint8_t { in, out, scratch };
  From from{};
  std::size_t index = 0;  // index of the operand, or offset in scratch in bytes
};

// The description of a node's steps. The node's workspace is the scratch followed by the engine's
// workspace.
struct FusedSteps {
  FusedGraph graph;             // the operations that the engine runs
  KernelSpec spec;              // of the whole node
  std::vector<Source> tensors;  // the memory of the graph's stored tensors, in their order
  std::size_t scratch_bytes = 0;
  bool widen =
      false;  // the engine writes out[0] to scratch in 16 bits; a kernel converts it to f32
};

// Returns the steps for a node in the requested layouts and types or in others; nothing if there is
// no engine.
std::optional<FusedSteps> steps_of(const FusedConv& op, const Signature& request,
                                   const FindFusedWorkspace& find);
std::optional<FusedSteps> steps_of(const FusedConvBackwardWeights& op, const Signature& request,
                                   const FindFusedWorkspace& find);
std::optional<FusedSteps> steps_of(const ConvBackwardDataNorm& op, const Signature& request,
                                   const FindFusedWorkspace& find);

// Returns the kernel that runs the steps with this engine.
std::unique_ptr<Kernel> make_kernel(FusedSteps steps, std::unique_ptr<FusedEngine> engine);

}  // namespace cnn::layers::cuda
