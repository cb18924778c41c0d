#pragma once

#include <optional>
#include <span>
#include <vector>

#include "runtime/graph.h"

namespace cnn::layers {

// Every parameter of the graph, in the order in which they were added.
std::vector<Value> parameters_of(Graph& graph);

// Appends nodes that compute d loss / d wrt[i], by asking each op in reverse order and adding where
// gradients meet: one Add over all of them, or for a parameter, which the slices of a batch share,
// an Add for each one that arrives, so that no more than two are alive. The sums are the same to
// the bit. `seed` is d loss / d loss, f32 []. Only what is needed for `wrt` is built: no data
// gradient of the first layer. Nothing: loss does not depend on wrt[i].
std::vector<std::optional<Value>> gradients(Value loss, std::span<const Value> wrt, Value seed);

}  // namespace cnn::layers
