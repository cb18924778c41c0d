#pragma once

#include <span>
#include <vector>

#include "runtime/graph.h"
#include "tests/support/host_tensor.h"

namespace cnn::tests {

// Runs a graph node by node with Op::reference. Every tensor is plain (row-major; f32 for
// floating-point types) and is rounded to its type after its node. All tensors stay available.
class Interpreter {
 public:
  // Fills parameters, state and inputs by their names (see fill_by_name), and activations with NaN.
  // The graph must outlive the interpreter and must not grow any more.
  explicit Interpreter(const Graph& graph, std::uint64_t seed = 1);

  TensorView view(TensorId id) const { return values_[index_of(id)].view(); }
  std::span<float> floats(Value value) const { return view(value.id).as<float>(); }
  std::span<float> floats(std::string_view name) const;  // throws if there is no such tensor
  std::span<std::int32_t> ints(std::string_view name) const;
  float scalar(Value value) const { return floats(value)[0]; }

  void run();  // runs all nodes in order
  void run(const Node& node);
  // Adopts the plain results of a node that ran elsewhere: its inputs afterwards and its outputs.
  void adopt(const Node& node, std::span<const TensorView> in, std::span<const TensorView> out);
  std::vector<TensorView> views(std::span<const TensorId> ids) const;
  const Graph& graph() const { return graph_; }

 private:
  TensorId find(std::string_view name) const;

  const Graph& graph_;
  std::vector<HostTensor> values_;  // indexed by TensorId
};

// Fills a tensor with values that suit its name: positive gammas, variances and second moments,
// powers of Adam's betas in (0, 1), and weights that keep activations near one. Integers are labels
// of ten classes, bytes cover their whole range, and all other values are uniform in [-1, 1). Name
// and seed determine the values. Parameters of a graph that computes in 16 bits are rounded to that
// type, because its kernels read them so.
void fill_by_name(const TensorInfo& info, DataType compute, std::uint64_t seed,
                  const TensorView& plain_values);

}  // namespace cnn::tests
