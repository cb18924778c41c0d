#include "runtime/graph.h"

#include <cstdint>
#include <string>
#include <utility>

#include "runtime/error.h"

namespace cnn {
namespace {

// Limits sizes so that every later sum of bytes fits in 64 bits.
void check_size(const TensorInfo& info) {
  constexpr std::int64_t max_elements = std::int64_t{1} << 48;
  std::int64_t elements = 1;
  for (const std::int64_t dim : info.desc.shape) {
    if (__builtin_mul_overflow(elements, dim, &elements) || elements > max_elements) {
      throw DoesNotFit(
          "out of memory: tensor " + info.name + " would have the shape " +
          to_string(info.desc.shape) +
          ", which no machine has the memory for; make the batch or the image smaller");
    }
  }
}

}  // namespace

const TensorDesc& Value::desc() const { return graph->info(id).desc; }

std::vector<std::optional<Value>> Op::backward(const Backprop& /*backprop*/) const {
  throw Error(std::string(name()) + " has no gradient");
}

Graph::Graph(Traits traits) : traits_(std::move(traits)), scope_(traits_.scope) {}

TensorId Graph::add_tensor(TensorInfo info) {
  check(!info.alias, "a tensor is placed inside another once both are in the graph");
  check_size(info);
  const TensorId id{static_cast<std::uint32_t>(tensors_.size())};
  if (info.role == Role::input) {
    inputs_.push_back(id);
  }
  tensors_.push_back(std::move(info));
  producers_.emplace_back();
  is_root_.push_back(false);
  return id;
}

void Graph::add_node(Node node) {
  const NodeId id{static_cast<std::uint32_t>(nodes_.size())};
  for (const TensorId output : node.outputs) {
    check(!producers_[index_of(output)], "a tensor has two producers");
    producers_[index_of(output)] = id;
  }
  nodes_.push_back(std::move(node));
}

void Graph::place_inside(TensorId part, TensorId root, std::int64_t channel_offset) {
  TensorInfo& inner = tensors_.at(index_of(part));
  const TensorInfo& outer = tensors_.at(index_of(root));
  const auto is_free_image = [](const TensorInfo& info) {
    return info.role == Role::activation && info.desc.layout == Layout::nhwc &&
           info.desc.shape.rank() == 4 && info.desc.pitch == 0 && !info.alias;
  };
  Shape widened = inner.desc.shape;
  widened[1] = outer.desc.shape[1];
  check(part != root && is_free_image(inner) && is_free_image(outer) && !is_root_[index_of(part)] &&
            inner.desc.type == outer.desc.type && widened == outer.desc.shape &&
            channel_offset >= 0 && channel_offset + inner.desc.shape[1] <= outer.desc.shape[1],
        inner.name + ", " + to_string(inner.desc) + ", cannot lie inside " + outer.name + ", " +
            to_string(outer.desc) + ", from channel " + std::to_string(channel_offset) + " on");
  inner.alias = {.root = root, .channel_offset = channel_offset};
  inner.desc.pitch = widened == inner.desc.shape ? 0 : widened[1];
  is_root_[index_of(root)] = true;
}

Value Graph::input(std::string name, TensorDesc desc) {
  TensorInfo info{.name = std::move(name), .desc = std::move(desc), .role = Role::input};
  return {this, add_tensor(std::move(info))};
}

Value Graph::parameter(std::string name, TensorDesc desc, ParameterOptions options) {
  TensorInfo info{.name = std::move(name),
                  .desc = std::move(desc),
                  .role = Role::parameter,
                  .initializer = options.initializer,
                  .saved_as = options.saved_as,
                  .decay = options.decay,
                  .saved = true};
  check(!find(info.name), "two parameters are called " + info.name);
  return {this, add_tensor(std::move(info))};
}

Value Graph::state(std::string name, TensorDesc desc, Initializer initializer, bool saved) {
  TensorInfo info{.name = std::move(name),
                  .desc = std::move(desc),
                  .role = Role::state,
                  .initializer = initializer,
                  .saved = saved};
  return {this, add_tensor(std::move(info))};
}

std::vector<Value> Graph::append(std::shared_ptr<const Op> op, std::span<const Value> in) {
  Node node{.op = std::move(op)};
  std::vector<TensorDesc> descs;
  for (const Value& value : in) {
    check(value.graph == this, "an op takes a tensor of another graph");
    node.inputs.push_back(value.id);
    descs.push_back(value.desc());
  }
  std::vector<Value> results;
  for (TensorDesc& desc : node.op->infer(descs)) {
    const std::string name = std::string(node.op->name()) + "#" + std::to_string(nodes_.size());
    const TensorId id = add_tensor({.name = name, .desc = std::move(desc)});
    node.outputs.push_back(id);
    results.push_back({this, id});
  }
  add_node(std::move(node));
  return results;
}

void Graph::output(std::string name, Value value) {
  outputs_.push_back({.name = std::move(name), .tensor = value.id});
}

std::string Graph::unique_name(std::string_view kind) {
  int& counter = counters_[std::string(kind)];
  return scope_ + std::string(kind) + std::to_string(counter++);
}

std::optional<TensorId> Graph::find(std::string_view name) const {
  for (std::size_t i = 0; i < tensors_.size(); ++i) {
    if (tensors_[i].name == name) {
      return TensorId{static_cast<std::uint32_t>(i)};
    }
  }
  return std::nullopt;
}

std::optional<NodeId> Graph::producer(TensorId id) const { return producers_[index_of(id)]; }

TensorId Graph::root_of(TensorId id) const {
  const std::optional<Alias>& alias = info(id).alias;
  return alias ? alias->root : id;
}

std::size_t Graph::offset_in_root(TensorId id) const {
  const TensorInfo& part = info(id);
  return part.alias ? static_cast<std::size_t>(part.alias->channel_offset) * size_of(part.desc.type)
                    : 0;
}

bool Graph::shares_bytes(TensorId id) const {
  return info(id).alias.has_value() || is_root_[index_of(id)];
}

NameScope::NameScope(Graph& graph, std::string_view name, Position position)
    : graph_(graph), outer_(graph.scope_) {
  std::string& scope = graph_.scope_;
  if (position == Position::replaces_innermost && !scope.empty()) {
    scope.pop_back();                    // the slash at the end
    scope.resize(scope.rfind('/') + 1);  // npos + 1 is 0: the scope had one part
  }
  scope += std::string(name) + "/";
}

NameScope::~NameScope() { graph_.scope_ = outer_; }

}  // namespace cnn
