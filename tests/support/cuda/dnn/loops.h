#pragma once

#include <map>

#include "tests/support/cuda/dnn/graph.h"

namespace cnn::tests::emulated::dnn {

// Computes a graph by plain loops, one operation after the other: sums in double, each result
// rounded to the type of its tensor. tf32: factors of f32 convolutions are rounded to TF32.
void compute(const Graph& graph, const std::map<Id, void*>& addresses, bool tf32);

}  // namespace cnn::tests::emulated::dnn
