#pragma once

#include <optional>
#include <span>
#include <vector>

#include "runtime/graph.h"

namespace cnn::layers {

// Returns every parameter of the graph, in the order in which they were added.
std::vector<Value> parameters_of(Graph& graph);

// Reverse-mode automatic differentiation: appends nodes that compute d loss / d wrt[i] and returns
// these gradients in the order of `wrt`, each nothing if the loss does not depend on it. Asks every
// op in reverse order for the gradients of its inputs. Gradients that meet at an activation are
// added by one Add over all of them. Those of a parameter, which the slices of a batch share, are
// added one by one as they arrive, so that no more than two are alive; the sums are bitwise the
// same. `seed` is d loss / d loss, f32 []. Appends only nodes that `wrt` needs: no data gradient of
// the first layer, for example. Throws Error if an op returns a gradient whose shape or type is not
// its input's.
std::vector<std::optional<Value>> gradients(Value loss, std::span<const Value> wrt, Value seed);

}  // namespace cnn::layers
