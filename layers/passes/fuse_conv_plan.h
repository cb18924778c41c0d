#pragma once

#include <cstddef>
#include <map>
#include <optional>
#include <set>
#include <vector>

#include "layers/passes/rewriter.h"
#include "runtime/graph.h"
#include "runtime/kernel.h"

// The decisions of fuse_convolutions() for every node, made before anything is rewritten.
namespace cnn::layers {

// BatchNorm nodes that stay kernels of their own although they could be fused.
using PlainNorms = std::set<NodeIndex>;

struct NormPlan {  // the decision for a BatchNorm
  // kept: stays a BatchNorm. stored: a ScaleBias stores its output. joined: the ScaleBias of
  // another norm also normalises its image, as the residual. on_load: its readers normalise as
  // their prologue, and its output is never stored.
  enum class Form : std::uint8_t { kept, stored, joined, on_load };
  Form form = Form::kept;
  std::optional<NodeIndex> conv;    // makes the sums; nothing: a ChannelSums does
  std::optional<NodeIndex> joined;  // the norm of the residual, in the same ScaleBias
};

struct ConvPlan {                 // a Conv2d that becomes a FusedConv
  std::optional<NodeIndex> norm;  // the norm that becomes its prologue
  bool statistics = false;
};

struct BackwardPlan {  // a BatchNormBackward that absorbs a Conv2dBackwardData
  NodeIndex norm = 0;  // its BatchNorm in the forward pass
  NodeIndex data = 0;  // the Conv2dBackwardData
};

struct ConvFusion {  // all decisions, by node
  std::map<NodeIndex, NormPlan> norms;
  std::map<NodeIndex, ConvPlan> convs;
  std::map<NodeIndex, BackwardPlan> backward;
  std::map<NodeIndex, NodeIndex> weights;  // by Conv2dBackwardWeights: the norm in its prologue
  std::vector<bool> absorbed;

  const NormPlan* fused_norm(NodeIndex node) const {  // nullptr if it stays a BatchNorm
    const auto found = norms.find(node);
    return found == norms.end() || found->second.form == NormPlan::Form::kept ? nullptr
                                                                              : &found->second;
  }
};

// Returns the decisions for a graph; parameters as in fuse_convolutions().
ConvFusion plan_conv_fusion(const Graph& graph, const KernelTable& table, Layout image,
                            const PlainNorms& plain = {});

}  // namespace cnn::layers
