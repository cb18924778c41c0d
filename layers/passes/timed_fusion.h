#pragma once

#include <functional>
#include <memory>
#include <span>

#include "layers/passes/fuse_conv_plan.h"
#include "layers/passes/node_seconds.h"
#include "runtime/graph.h"

// Profile-guided fusion: decides by measured times which batch norms are fused with the
// convolutions around them.
namespace cnn::layers {

// Returns the step, with settled layouts, in which these norms are plain.
using BuildStep = std::function<std::shared_ptr<const Graph>(const PlainNorms& plain)>;

// Returns the norms of `fusible` that shorten the step as kernels of their own. Coordinate descent
// from the step in which all are fused: norms of one kind (equal norms between equal operations)
// change their form together if that shortens the sum of all nodes' seconds, until no kind does.
// Compares the result with the step in which all are plain, and returns the shorter one. Never
// takes a form that has a node of unknown time. A pure function: equal times give equal results.
PlainNorms norms_faster_plain(const Graph& graph, std::span<const NodeIndex> fusible,
                              const BuildStep& build, const NodeSeconds& seconds);

}  // namespace cnn::layers
