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

// A kernel against the plain loops of its op, for one node of a case.
namespace cnn::tests {

// Returns the signature that the layout pass would ask for: images in the backend's layout, all
// else row-major.
Signature asked(const Graph& graph, const Node& node, Layout image_layout);

bool equal_bytes(const HostTensor& a, const HostTensor& b);
std::vector<TensorView> views_of(std::span<const HostTensor> tensors);

// The results of the op's own loops for given operands.
struct Expected {
  std::vector<HostTensor> before, after, out;

  // promised: how the graph describes the outputs; results are rounded to these types.
  Expected(const Op& op, std::span<const TensorView> in, std::span<const TensorDesc> promised);
};

// One node of a case, and what it must compute on the case's operands.
struct Subject {
  const Graph& graph;
  const Node& node;
  std::vector<TensorDesc> promised;
  Expected expected;

  Subject(const Interpreter& values, const Node& of);
};

// Puts NaN and both infinities among the values of each tensor of real numbers with this role that
// has more than a few.
void plant_non_finite(Interpreter& values, Role role);
// Returns what the kernels of an op may make of such operands.
NonFinite allowed_for(const Op& op);

// Runs the backend's kernel for the node, also with its outputs in the place of inputs in every
// way that the op allows, and expects what the op defines. Nothing if it has no kernel for it.
std::optional<OpRun> check_node(const Backend& backend, const Subject& subject, double tolerance,
                                NonFinite allowed = NonFinite::exact);

// With other channels between the pixels of every image of which the kernel takes that; nothing if
// there is none.
std::optional<Signature> spread_out(const KernelTable& table, const Op& op, Signature signature);

// The same node with its images spread out, if the backend's kernel takes them so, gives what it
// gave with them apart, and touches nothing between the pixels. tolerance: 0 for the same values.
void check_pitched(const Backend& backend, const Subject& subject, const OpRun& apart,
                   double tolerance = 0);

}  // namespace cnn::tests
