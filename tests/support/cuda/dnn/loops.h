#pragma once

#include <map>

#include "tests/support/cuda/dnn/graph.h"

namespace cnn::tests::emulated::dnn {

// Computes a graph by plain loops, one operation after another. Sums are in double, and each result
// is rounded to the type of its tensor. tf32: rounds the factors of f32 convolutions to TF32.
void compute(const Graph& graph, const std::map<Id, void*>& addresses, bool tf32);

}  // namespace cnn::tests::emulated::dnn
