#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string_view>

#include "layers/optimizer.h"
#include "layers/passes/fuse_gradients.h"
#include "layers/passes/node_seconds.h"
#include "layers/passes/prologue.h"
#include "layers/passes/slice_batch.h"
#include "runtime/graph.h"
#include "runtime/kernel.h"

namespace cnn::layers {

// How far a graph is rewritten. bn: ReLU and joins within what comes before them, norms folded
// where nothing is trained. conv: also norms within the convolutions around them.
enum class Fusion : std::uint8_t { none, bn, conv };
std::string_view name_of(Fusion fusion);

struct TrainingOptions {
  OptimizerOptions optimizer;
  // Called between gradients and update, of all parameters: may append nodes and outputs, and put
  // other tensors in the place of the gradients. Empty: nothing happens there.
  std::function<void(std::span<const Value> parameters, std::span<Value> gradients)> on_gradients;
};

// Appends to a forward graph the gradients of `loss` by all parameters, the running averages of
// batch norms and the update, whose L2 sum becomes the output "l2". Throws Error if the loss does
// not depend on every parameter.
void append_training(Graph& graph, Value loss, const TrainingOptions& options);

// The choices of the passes that turn a forward graph into a step.
struct PipelineOptions {
  Fusion fusion = Fusion::bn;  // at most: conv only as far as the table has kernels for it
  // With Fusion::conv: batch norms that are faster plain stay so, see norms_faster_plain(). Empty:
  // all are fused that the table has kernels for.
  NodeSeconds seconds = {};
  Layout layout = Layout::nchw;   // of images inside the network
  std::optional<TensorId> loss;   // f32 []: the graph is trained. Nothing: it stays as it is
  TrainingOptions training = {};  // with a loss
  // Two gradients of more bytes than this meet in a node of their own, not in the norm that reads
  // their sum: for a step that must do with little memory, see join_gradients().
  std::size_t max_fused_grad_add_bytes = any_size;
  // The batch is computed in so many slices as far as that can be, see slice_batch().
  std::int64_t slices = 1;
  // Variables of a training program that an evaluation shares: their layouts are given, and they
  // change between its runs. Empty: there is none.
  std::span<const TensorInfo> fixed = {};
};

// How many batch norms, each with the convolutions around it, take which form with Fusion::conv.
struct NormForms {
  std::size_t fused = 0;
  std::size_t plain = 0;         // all others
  std::size_t faster_plain = 0;  // of these: by measured times
};

struct PipelineResult {
  Divided graphs;   // layouts are settled: ready to be planned
  Fusion fusion{};  // as reached: conv only if there are fused convolutions
  NormForms norms;
  Slicing slicing;
};

// All passes in their order: forward fusion, slices of the batch, gradients and update, fusion
// across the two halves, layouts, then what leaves the step for a prologue (copies of parameters
// that the update keeps up to date, or what depends on constants alone), and what is concatenated
// in place. Kernels are only asked, by describe(); no pass puts an op that they lack in the place
// of one that they have.
PipelineResult run_pipeline(const Graph& forward, const KernelTable& table,
                            const PipelineOptions& options);

}  // namespace cnn::layers
