#pragma once

#include <functional>
#include <memory>
#include <optional>

#include "layers/conv.h"
#include "layers/cuda/conv_graph.h"
#include "runtime/kernel.h"

// The steps that compute a convolution node: an engine of a library, and our own kernels before and
// after it. The interface is independent of the library that provides the engine.
namespace cnn::layers::cuda {

// The addresses of one run in device memory; images and weights are in nhwc.
struct ConvOperands {
  std::byte *x = nullptr, *w = nullptr, *bias = nullptr, *y = nullptr;  // bias: null without one
  std::byte* workspace = nullptr;
};

// A convolution engine that is prepared to run; run() enqueues it and returns.
class ConvEngine {
 public:
  virtual ~ConvEngine() = default;
  virtual void run(Stream& stream, const ConvOperands& operands) = 0;
};

// Returns the workspace of the engine for a graph in bytes, or nothing if there is no engine.
using FindWorkspace = std::function<std::optional<std::size_t>(const ConvGraph&)>;

// The description of a node's steps.
struct ConvSteps {
  ConvGraph graph;               // the convolution that the engine runs
  KernelSpec spec;               // of the whole node
  std::size_t engine_bytes = 0;  // of the workspace, for the engine
  int channels = 0;              // of x and w in memory; the graph pads them if it has more
  bool epilogue = false;         // our kernel adds bias, residual and ReLU of the attributes
  ConvAttributes attributes;

  bool is_padded() const { return graph.x[1] > channels && !attributes.depthwise; }
  // The images as the node has them in memory, without padding.
  TensorDesc x_image() const;
  TensorDesc y_image() const;
};

// Returns the steps for a node in the requested layouts and types or in others. Returns nothing if
// no engine takes an operand's type or there is no engine.
std::optional<ConvSteps> steps_of(const Conv2d& op, const Signature& request,
                                  const FindWorkspace& find);
std::optional<ConvSteps> steps_of(const Conv2dBackwardData& op, const Signature& request,
                                  const FindWorkspace& find);
std::optional<ConvSteps> steps_of(const Conv2dBackwardWeights& op, const Signature& request,
                                  const FindWorkspace& find);

// Returns the kernel that runs the steps with this engine.
std::unique_ptr<Kernel> make_kernel(ConvSteps steps, std::unique_ptr<ConvEngine> engine);

}  // namespace cnn::layers::cuda
