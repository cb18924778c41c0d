#pragma once

#include <functional>
#include <memory>
#include <optional>

#include "layers/conv.h"
#include "layers/cuda/conv_graph.h"
#include "runtime/kernel.h"

// How a node of a convolution is computed: by an engine of the library, and what it leaves to us
// before and after it. The library of the engine does not matter here.
namespace cnn::layers::cuda {

// Addresses of one run, in nhwc.
struct ConvOperands {
  std::byte *x = nullptr, *w = nullptr, *bias = nullptr, *y = nullptr;  // bias: null without one
  std::byte* workspace = nullptr;
};

// A convolution ready to run.
class ConvEngine {
 public:
  virtual ~ConvEngine() = default;
  virtual void run(Stream& stream, const ConvOperands& operands) = 0;
};

// The workspace in bytes of the engine for a graph; nothing if there is none.
using FindWorkspace = std::function<std::optional<std::size_t>(const ConvGraph&)>;

struct ConvSteps {
  ConvGraph graph;               // what the engine runs
  KernelSpec spec;               // of the whole node
  std::size_t engine_bytes = 0;  // of the workspace, for the engine
  int channels = 0;              // of x and w in memory; the graph's are padded if it has more
  bool epilogue = false;         // our own: bias, residual and ReLU as `attributes` say
  ConvAttributes attributes;

  bool is_padded() const { return graph.x[1] > channels && !attributes.depthwise; }
  // The images as the node has them in memory.
  TensorDesc x_image() const;
  TensorDesc y_image() const;
};

// The steps for a node, as it is asked or with other layouts and types; nothing if an operand has a
// type that no engine takes, or there is no engine.
std::optional<ConvSteps> steps_of(const Conv2d& op, const Signature& asked,
                                  const FindWorkspace& find);
std::optional<ConvSteps> steps_of(const Conv2dBackwardData& op, const Signature& asked,
                                  const FindWorkspace& find);
std::optional<ConvSteps> steps_of(const Conv2dBackwardWeights& op, const Signature& asked,
                                  const FindWorkspace& find);

std::unique_ptr<Kernel> make_kernel(ConvSteps steps, std::unique_ptr<ConvEngine> engine);

}  // namespace cnn::layers::cuda
