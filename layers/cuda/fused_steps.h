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
// operands of the node and pieces of its workspace. They do not depend on which library has the
// engine.
namespace cnn::layers::cuda {

// A fused convolution ready to run.
class FusedEngine {
 public:
  virtual ~FusedEngine() = default;
  // tensors: addresses of the graph's tensors in memory, in their order.
  virtual void run(Stream& stream, std::span<void* const> tensors, std::byte* workspace) = 0;
};

// Returns the workspace of the engine for a graph in bytes, or nothing if there is no engine.
using FindFusedWorkspace = std::function<std::optional<std::size_t>(const FusedGraph&)>;

// The origin of the address of one of a graph's tensors: an operand of the node, or a piece of its
// workspace.
struct Source {
  enum class From : std::uint8_t { in, out, scratch };
  From from{};
  std::size_t index = 0;  // of the operand; of scratch, the offset in bytes
};

// The node's workspace is scratch, then the engine's.
struct FusedSteps {
  FusedGraph graph;
  KernelSpec spec;
  std::vector<Source> tensors;  // of the graph's tensors in memory, in their order
  std::size_t scratch_bytes = 0;
  bool widen = false;  // scratch holds out[0] in 16 bits
};

// Returns the steps for a node in the requested layouts and types or in others; nothing if there is
// no engine.
std::optional<FusedSteps> steps_of(const FusedConv& op, const Signature& asked,
                                   const FindFusedWorkspace& find);
std::optional<FusedSteps> steps_of(const FusedConvBackwardWeights& op, const Signature& asked,
                                   const FindFusedWorkspace& find);
std::optional<FusedSteps> steps_of(const ConvBackwardDataNorm& op, const Signature& asked,
                                   const FindFusedWorkspace& find);

// Returns the kernel that runs the steps with this engine.
std::unique_ptr<Kernel> make_kernel(FusedSteps steps, std::unique_ptr<FusedEngine> engine);

}  // namespace cnn::layers::cuda
