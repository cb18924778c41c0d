#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string_view>

#include "layers/optimizer.h"
#include "layers/passes/fuse_gradients.h"
#include "layers/passes/host_variables.h"
#include "layers/passes/node_seconds.h"
#include "layers/passes/prologue.h"
#include "layers/passes/slice_batch.h"
#include "runtime/graph.h"
#include "runtime/kernel.h"

namespace cnn::layers {

// The extent of operator fusion. none: no rewrite. bn: ReLU and Add become epilogues of the ops
// before them, and inference graphs fold batch norms into convolutions. conv: also fuses batch
// norms with the convolutions around them.
enum class Fusion : std::uint8_t { none, bn, conv };
std::string_view name_of(Fusion fusion);

struct TrainingOptions {
  OptimizerOptions optimizer;
  // Called after the gradients of all parameters are appended and before the update is. May append
  // nodes and outputs, and replace gradients by other tensors. Empty: not called.
  std::function<void(std::span<const Value> parameters, std::span<Value> gradients)> on_gradients;
};

// Appends to a forward graph the gradients of `loss` with respect to all parameters, the running
// averages of batch norms and the update, whose L2 sum becomes the output "l2". Throws Error if the
// loss does not depend on every parameter.
void append_training(Graph& graph, Value loss, const TrainingOptions& options);

// Options of the passes that turn a forward graph into a step.
struct PipelineOptions {
  Fusion fusion = Fusion::bn;  // an upper limit: conv needs kernels of the table
  // With Fusion::conv: leaves batch norms unfused that are faster so, see norms_faster_plain().
  // Empty: fuses all batch norms for which the table has kernels.
  NodeSeconds seconds = {};
  Layout layout = Layout::nchw;   // the layout of images inside the network
  std::optional<TensorId> loss;   // f32 []: appends the training step. Nothing: inference
  TrainingOptions training = {};  // used only with a loss
  // Sums of two gradients that are larger than this many bytes stay Add nodes of their own instead
  // of parts of a batch norm, which saves memory; see fuse_gradient_adds().
  std::size_t max_fused_grad_add_bytes = any_size;
  // Computes the batch in this many slices where the graph allows it: see slice_norms() for the
  // training of graphs with batch norms, whose convolutions are then not fused with norms, and
  // slice_batch() for all others.
  std::int64_t slices = 1;
  // Computes each image in this many slices along its rows, but at most one for each row of the
  // last map that the graph allows it for: see slice_rows(). Has no effect on the training of
  // graphs with batch norms.
  std::int64_t row_slices = 1;
  // Variables that an evaluation shares with a training program, which sets their layouts and
  // changes them between evaluations. Empty: none are shared.
  std::span<const TensorInfo> fixed = {};
  // Parameters that lie in host memory, as place_variables_on_host() arranges it. Empty: none.
  IsOnHost is_on_host = {};
  // Computes dense layers with such parameters in this many slices: see slice_dense().
  std::int64_t dense_slices = 1;
};

// How many batch norms, and the convolutions around them, take each form with Fusion::conv.
struct NormForms {
  std::size_t fused = 0;
  std::size_t plain = 0;         // all other batch norms
  std::size_t faster_plain = 0;  // the plain ones that measured times chose
};

struct PipelineResult {
  PrologueSplit graphs;  // with settled layouts, ready to be planned
  Fusion fusion{};       // the extent reached: conv if any convolution is fused
  NormForms norms;
  Slicing slicing;
};

// Runs all passes in their order: forward fusion, slices of images and batch, gradients and update,
// fusion across forward and backward pass, slices of dense layers, layouts. Then nodes that need
// not run in every step move to a prologue: conversions to copies of parameters that the update
// maintains, or nodes that depend on constants alone. Variables on the host and concatenation in
// place come last. Asks kernels only by describe(), and replaces no op that has a kernel by one
// that has none. Throws Error as append_training() and assign_layouts() do.
PipelineResult run_pipeline(const Graph& forward, const KernelTable& table,
                            const PipelineOptions& options);

}  // namespace cnn::layers
