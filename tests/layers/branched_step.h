#pragma once

#include <cstdint>
#include <memory>

#include "layers/activation.h"
#include "layers/batch_norm.h"
#include "layers/concat.h"
#include "layers/conv.h"
#include "layers/operands.h"
#include "layers/passes/fuse.h"
#include "layers/passes/layout.h"
#include "layers/pool.h"
#include "tests/layers/gradient_outputs.h"

// Builds the training step of a small network with concatenated branches.
namespace cnn::tests {

// Returns branches of 8, 16, 8 and `last` channels, made by the ops that make them in real
// networks.
inline Value branches(Value x, std::int64_t last) {
  const layers::PoolOptions same{.kernel = 3, .stride = 1, .padding = layers::Padding::same};
  const Value a = layers::conv(x, {.filters = 8});
  const Value b =
      layers::conv_bn(layers::conv_bn(x, {.filters = 4}, {}), {.filters = 16, .kernel = 3}, {});
  const Value c = layers::max_pool(layers::conv(x, {.filters = 8}), same);
  return layers::concat(
      {{a, b, c, layers::conv(layers::average_pool(x, same), {.filters = last})}});
}

// Returns a step of `modules` such modules and a ReLU, whose output is z. The graph's outputs are
// the gradients of sum(z dz) with respect to all parameters. Layouts are settled.
inline std::shared_ptr<Graph> branched_step(DataType type, const KernelTable& table,
                                            int modules = 2) {
  Graph forward({.compute = type});
  const Value x = forward.state("images", layers::described({2, 8, 5, 4}, type), {}, false);
  Value y = x;
  for (int module = 1; module < modules; ++module) {
    y = branches(y, 24);
  }
  y = branches(y, 8);
  const Rewritten fused = layers::fuse_activations(forward);
  Graph& graph = *fused.graph;
  const Value end{&graph, fused.was[index_of(y.id)].value()};
  const Value z = layers::relu(end);
  output_gradients(graph, z, graph.state("dz", z.desc(), {}, false));
  return layers::assign_layouts(graph, table, Layout::nhwc).graph;
}

}  // namespace cnn::tests
