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

// How a node of a fused convolution is computed: by an engine of the library, which takes operands
// of the node and pieces of its workspace. The library of the engine does not matter here.
namespace cnn::layers::cuda {

// A fused convolution ready to run.
class FusedEngine {
 public:
  virtual ~FusedEngine() = default;
  // tensors: addresses of the graph's tensors in memory, in their order.
  virtual void run(Stream& stream, std::span<void* const> tensors, std::byte* workspace) = 0;
};

// The workspace in bytes of the engine for a graph; nothing if there is none.
using FindFusedWorkspace = std::function<std::optional<std::size_t>(const FusedGraph&)>;

// Where the address of one of a graph's tensors comes from: an operand of the node, or a piece of
// its workspace.
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

// The steps for a node, as it is asked or with other layouts and types; nothing if there is no
// engine.
std::optional<FusedSteps> steps_of(const FusedConv& op, const Signature& asked,
                                   const FindFusedWorkspace& find);
std::optional<FusedSteps> steps_of(const FusedConvBackwardWeights& op, const Signature& asked,
                                   const FindFusedWorkspace& find);
std::optional<FusedSteps> steps_of(const ConvBackwardDataNorm& op, const Signature& asked,
                                   const FindFusedWorkspace& find);

std::unique_ptr<Kernel> make_kernel(FusedSteps steps, std::unique_ptr<FusedEngine> engine);

}  // namespace cnn::layers::cuda
