#include "bench/session/written_tensors.h"

#include <algorithm>
#include <fmt/format.h>
#include <map>

#include "layers/elementwise.h"
#include "layers/host_variable.h"
#include "layers/initializer.h"
#include "runtime/access.h"
#include "runtime/error.h"
#include "runtime/schedule.h"
#include "runtime/tensor_hash.h"

namespace cnn::bench {
namespace {

// Returns whether a node only converts the layout, or loads a variable from the host: its output
// then has the key of its input.
bool keeps_values(const Graph& graph, const Node& node) {
  if (const auto* load = dynamic_cast<const layers::LoadVariable*>(node.op.get())) {
    return !load->slice;
  }
  if (dynamic_cast<const layers::Convert*>(node.op.get()) == nullptr) {
    return false;
  }
  return graph.info(node.inputs.front()).desc.type == graph.info(node.outputs.front()).desc.type;
}

// Keys by TensorId: how each tensor is computed from inputs and variables.
class Keys {
 public:
  explicit Keys(const Graph& graph) : keys_(graph.tensors().size()) {
    for (std::size_t t = 0; t < keys_.size(); ++t) {
      if (!graph.producer(TensorId{static_cast<std::uint32_t>(t)})) {
        keys_[t] = key_of_source(graph.tensors()[t]);
      }
    }
    for (const Node& node : graph.nodes()) {
      add(graph, node);
    }
  }

  std::uint64_t of(TensorId tensor) const { return keys_[index_of(tensor)]; }

 private:
  // Distinguishes equal nodes, such as two pools of one tensor, by their order.
  std::uint64_t distinct(std::uint64_t key) { return combine_hash(key, equal_[key]++); }

  // A copy of a variable in another layout holds the same values. A copy of another type is
  // rounded: its key is that of the output of a node that converts the variable.
  std::uint64_t key_of_source(const TensorInfo& info) {
    const std::string_view name = info.name;
    if (info.role != Role::derived) {
      return layers::fnv1a(name);
    }
    const std::uint64_t variable = layers::fnv1a(name.substr(0, name.find(':')));
    if (info.desc.type == DataType::f32) {
      return variable;
    }
    return combine_hash(distinct(combine_hash(layers::fnv1a("convert"), variable)), 0);
  }

  void add(const Graph& graph, const Node& node) {
    if (keeps_values(graph, node)) {
      keys_[index_of(node.outputs.front())] = of(node.inputs.front());
      return;
    }
    std::uint64_t key = layers::fnv1a(node.op->name());
    for (const TensorId input : node.inputs) {
      key = combine_hash(key, of(input));
    }
    key = distinct(key);
    for (std::size_t o = 0; o < node.outputs.size(); ++o) {
      keys_[index_of(node.outputs[o])] = combine_hash(key, o);
    }
  }

  std::vector<std::uint64_t> keys_;
  std::map<std::uint64_t, std::uint64_t> equal_;  // equal nodes so far, by key
};

// A variable that is stored in slices has the key of its update, to which it is equal.
std::uint64_t key_of_change(const WrittenTensor& tensor, std::uint64_t key) {
  const std::string op = tensor.op == "store_variable" ? "update" : tensor.op;
  return combine_hash(layers::fnv1a(op), key);
}

bool completes_operand(const Graph& graph, const Node& node) {
  std::vector<TensorDesc> in;
  for (const TensorId input : node.inputs) {
    in.push_back(graph.info(input).desc);
  }
  return layers::completes_operand(*node.op, in);
}

std::string layer_of(const Graph& graph, const Node& node) {
  for (const TensorId input : node.inputs) {
    const TensorInfo& info = graph.info(input);
    if (info.role == Role::parameter || info.role == Role::derived) {
      return info.name;
    }
  }
  return {};
}

}  // namespace

WrittenTensors::WrittenTensors(const Graph& graph) {
  const Keys keys(graph);
  for (std::size_t n = 0; n < graph.nodes().size(); ++n) {
    const Node& node = graph.nodes()[n];
    first_.push_back(tensors_.size());
    const NodeId id{static_cast<std::uint32_t>(n)};
    WrittenTensor tensor{
        .node = id, .node_name = to_string(graph, Compute{id}), .op = std::string(node.op->name())};
    const std::string layer = layer_of(graph, node);
    const auto add = [&](TensorId written, std::size_t operand) {
      const TensorInfo& info = graph.info(written);
      tensor.operand = operand;
      tensor.desc = info.desc;
      tensor.name = is_persistent(info.role)
                        ? info.name
                        : fmt::format("{}:{}", tensor.node_name, tensor.output);
      tensor.layer = is_persistent(info.role) ? std::string() : layer;
      tensor.key = tensor.in_place ? key_of_change(tensor, keys.of(written)) : keys.of(written);
      tensors_.push_back(tensor);
      ++tensor.output;
    };
    for (std::size_t o = 0; o < node.outputs.size(); ++o) {
      add(node.outputs[o], o);
    }
    tensor.in_place = true;
    for (std::size_t i = 0; i < node.inputs.size(); ++i) {
      if (node.op->mutates(i) && completes_operand(graph, node)) {
        add(node.inputs[i], i);
      }
    }
  }
  first_.push_back(tensors_.size());
}

std::size_t WrittenTensors::find(const std::string& name) const {
  const auto found = std::ranges::find_if(tensors_, [&](const WrittenTensor& tensor) {
    return tensor.name == name || (tensor.node_name == name && tensor.output == 0);
  });
  check(found != tensors_.end(),
        fmt::format("the step writes no tensor {}: --print_plan shows the nodes, such as conv#15, "
                    "whose outputs are conv#15:0 and so on; variables have their own names",
                    name));
  return static_cast<std::size_t>(found - tensors_.begin());
}

}  // namespace cnn::bench
