#pragma once

#include <optional>
#include <span>
#include <vector>

#include "runtime/graph.h"
#include "tests/layers/backends.h"
#include "tests/support/host_tensor.h"
#include "tests/support/interpreter.h"
#include "tests/support/non_finite.h"
#include "tests/support/op_runner.h"

// Compares a kernel with the reference loops of its op, for one node of a case.
namespace cnn::tests {

// Returns the signature that the layout pass requests: images in the backend's layout, all other
// tensors row-major.
Signature request(const Graph& graph, const Node& node, Layout image_layout);

bool equal_bytes(const HostTensor& a, const HostTensor& b);
std::vector<TensorView> views_of(std::span<const HostTensor> tensors);

// The results of the op's reference loops for given operands.
struct Expected {
  std::vector<HostTensor> before, after, out;

  // promised: the graph's descriptions of the outputs; results are rounded to their types.
  Expected(const Op& op, std::span<const TensorView> in, std::span<const TensorDesc> promised);
};

// A node of a case with its expected results on the case's operands.
struct Subject {
  const Graph& graph;
  const Node& node;
  std::vector<TensorDesc> promised;
  Expected expected;

  Subject(const Interpreter& values, const Node& node);
};

// Plants NaN and both infinities in each floating-point tensor of this role that has more than a
// few elements.
void plant_non_finite(Interpreter& values, Role role);
// Returns how exactly an op's kernels must propagate such operands.
NonFinite allowed_for(const Op& op);

// Runs the backend's kernel for the node, also with every permitted combination of in-place
// outputs, and expects the op's reference results. Returns nothing if the backend has no kernel for
// the node.
std::optional<OpRun> check_node(const Backend& backend, const Subject& subject, double tolerance,
                                NonFinite allowed = NonFinite::exact);

// Returns the signature with a pitch in every image for which the kernel accepts one, or nothing if
// there is no such image.
std::optional<Signature> spread_out(const KernelTable& table, const Op& op, Signature signature);

// Runs the node with pitched images if the backend's kernel accepts them. Expects the same results
// as with dense images and no change between pixels. tolerance: 0 for identical values.
void check_pitched(const Backend& backend, const Subject& subject, const OpRun& apart,
                   double tolerance = 0);

}  // namespace cnn::tests
