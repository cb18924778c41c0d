#pragma once

#include <span>
#include <vector>

#include "runtime/graph.h"
#include "tests/support/host_tensor.h"

namespace cnn::tests {

// Runs a graph node by node with Op::reference. Every tensor is plain (row-major; f32 for real
// types) and rounded to its type after its node. All tensors stay: results can be looked at after.
class Interpreter {
 public:
  // Fills parameters, state and inputs by their names (see fill_by_name), activations with NaN. The
  // graph must outlive the interpreter and grow no more.
  explicit Interpreter(const Graph& graph, std::uint64_t seed = 1);

  TensorView view(TensorId id) const { return values_[index_of(id)].view(); }
  std::span<float> floats(Value value) const { return view(value.id).as<float>(); }
  std::span<float> floats(std::string_view name) const;  // throws if there is no such tensor
  std::span<std::int32_t> ints(std::string_view name) const;
  float scalar(Value value) const { return floats(value)[0]; }

  void run();  // all nodes in their order
  void run(const Node& node);
  // Takes over what a node made elsewhere: its inputs afterwards and its outputs, both plain.
  void adopt(const Node& node, std::span<const TensorView> in, std::span<const TensorView> out);
  std::vector<TensorView> views(std::span<const TensorId> ids) const;
  const Graph& graph() const { return graph_; }

 private:
  TensorId find(std::string_view name) const;

  const Graph& graph_;
  std::vector<HostTensor> values_;  // by TensorId
};

// Values that suit a tensor of that name: gamma, variances and second moments positive, powers of
// adam's betas within (0, 1), weights of a size that keeps activations near one, integers as labels
// of ten classes, bytes over their whole range, else uniform in [-1, 1). A function of name and
// seed. Parameters of a graph that computes in 16 bits are rounded to that type, as its kernels
// read them.
void fill_by_name(const TensorInfo& info, DataType compute, std::uint64_t seed,
                  const TensorView& plain_values);

}  // namespace cnn::tests
