#pragma once

#include <cstddef>
#include <map>
#include <optional>
#include <set>
#include <vector>

#include "runtime/graph.h"
#include "runtime/kernel.h"

// The rewrite that fuse_convolutions will make, node by node: decided before anything is rewritten.
namespace cnn::layers {

using NodeIndex = std::size_t;

// Nodes of BatchNorm that stay kernels of their own although they could be fused.
using PlainNorms = std::set<NodeIndex>;

struct NormPlan {  // of a BatchNorm
  // stored: a ScaleBias. joined: the second image of another norm's ScaleBias. on_load: the
  // prologue of all its readers.
  enum class Form : std::uint8_t { kept, stored, joined, on_load };
  Form form = Form::kept;
  std::optional<NodeIndex> conv;    // makes the sums; nothing: ChannelSums does
  std::optional<NodeIndex> joined;  // the norm of the residual, in the same ScaleBias
};

struct ConvPlan {                 // of a Conv2d that becomes a FusedConv
  std::optional<NodeIndex> norm;  // its prologue
  bool statistics = false;
};

struct BackwardPlan {  // of a BatchNormBackward
  NodeIndex norm = 0;  // the forward one
  NodeIndex data = 0;  // the Conv2dBackwardData that it absorbs
};

struct ConvFusion {  // by node
  std::map<NodeIndex, NormPlan> norms;
  std::map<NodeIndex, ConvPlan> convs;
  std::map<NodeIndex, BackwardPlan> backward;
  std::map<NodeIndex, NodeIndex> weights;  // Conv2dBackwardWeights: the norm of its prologue
  std::vector<bool> absorbed;

  const NormPlan* fused_norm(NodeIndex node) const {  // nullptr: stays as it is
    const auto found = norms.find(node);
    return found == norms.end() || found->second.form == NormPlan::Form::kept ? nullptr
                                                                              : &found->second;
  }
};

// See fuse_convolutions.
ConvFusion plan_conv_fusion(const Graph& graph, const KernelTable& table, Layout image,
                            const PlainNorms& plain = {});

}  // namespace cnn::layers
