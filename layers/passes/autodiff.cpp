#include "layers/passes/autodiff.h"

#include <algorithm>
#include <memory>
#include <string>

#include "layers/elementwise.h"
#include "runtime/error.h"

namespace cnn::layers {

namespace {

// Collects the gradients that arrive at each tensor, by TensorId.
class Arrivals {
 public:
  Arrivals(Graph& graph, std::span<const Value> wrt)
      : graph_(graph), needed_(graph.tensors().size(), false), terms_(graph.tensors().size()) {
    for (const Value& value : wrt) {
      needed_[index_of(value.id)] = true;
    }
    // Gradients flow through every tensor that is computed from wrt.
    for (const Node& node : graph.nodes()) {
      for (const TensorId output : node.outputs) {
        needed_[index_of(output)] = needed_[index_of(output)] || any_needed(node.inputs);
      }
    }
  }

  bool needed(TensorId id) const { return needed_[index_of(id)]; }
  bool any_needed(std::span<const TensorId> ids) const {
    return std::ranges::any_of(ids, [this](TensorId id) { return needed(id); });
  }

  void add(TensorId id, Value gradient) {
    const TensorInfo& info = graph_.info(id);
    if (gradient.desc().shape != info.desc.shape || gradient.desc().type != info.desc.type) {
      throw Error("autodiff: the gradient of " + info.name + ", " + to_string(info.desc) +
                  ", came out as " + to_string(gradient.desc()));
    }
    std::vector<Value>& terms = terms_[index_of(id)];
    terms.push_back(gradient);
    if (info.role == Role::parameter) {
      sum(terms);
    }
  }

  // Returns the sum of the gradients that have arrived, nothing if there are none. The sum replaces
  // its terms, so that it is computed only once.
  std::optional<Value> total(TensorId id) {
    std::vector<Value>& terms = terms_[index_of(id)];
    sum(terms);
    return terms.empty() ? std::nullopt : std::optional(terms.front());
  }

 private:
  void sum(std::vector<Value>& terms) {
    if (terms.size() > 1) {
      terms = graph_.append(std::make_shared<const Add>(), terms);
    }
  }

  Graph& graph_;
  std::vector<bool> needed_;
  std::vector<std::vector<Value>> terms_;
};

std::vector<Value> values(Graph& graph, std::span<const TensorId> ids) {
  std::vector<Value> result;
  for (const TensorId id : ids) {
    result.push_back({&graph, id});
  }
  return result;
}

// Asks the op of a node for the gradients of its inputs, unless no gradient reached its outputs.
void pass_on(Graph& graph, const Node& node, Arrivals& arrivals) {
  std::vector<std::optional<Value>> grad;
  bool reached = false;
  for (const TensorId output : node.outputs) {
    grad.push_back(arrivals.total(output));
    reached = reached || grad.back().has_value();
  }
  if (!reached) {
    return;
  }
  const std::vector<Value> in = values(graph, node.inputs);
  const std::vector<Value> out = values(graph, node.outputs);
  const auto wanted = std::make_unique<bool[]>(in.size());  // vector<bool> is no span of bool
  for (std::size_t i = 0; i < in.size(); ++i) {
    wanted[i] = arrivals.needed(in[i].id);
  }
  const std::vector<std::optional<Value>> result =
      node.op->backward({in, out, grad, {wanted.get(), in.size()}});
  check(result.size() == in.size(), "autodiff: an op must answer for each of its inputs");
  for (std::size_t i = 0; i < in.size(); ++i) {
    if (wanted[i] && result[i]) {
      arrivals.add(in[i].id, *result[i]);
    }
  }
}

}  // namespace

std::vector<Value> parameters_of(Graph& graph) {
  std::vector<Value> parameters;
  for (std::uint32_t i = 0; i < graph.tensors().size(); ++i) {
    if (graph.tensors()[i].role == Role::parameter) {
      parameters.push_back({&graph, TensorId{i}});
    }
  }
  return parameters;
}

std::vector<std::optional<Value>> gradients(Value loss, std::span<const Value> wrt, Value seed) {
  Graph& graph = *loss.graph;
  Arrivals arrivals(graph, wrt);
  if (arrivals.needed(loss.id)) {
    arrivals.add(loss.id, seed);
  }
  for (std::size_t i = graph.nodes().size(); i-- > 0;) {
    const Node node = graph.nodes()[i];  // a copy: the graph grows meanwhile
    if (arrivals.any_needed(node.inputs)) {
      pass_on(graph, node, arrivals);
    }
  }
  std::vector<std::optional<Value>> result;
  for (const Value& value : wrt) {
    result.push_back(arrivals.total(value.id));
  }
  return result;
}

}  // namespace cnn::layers
