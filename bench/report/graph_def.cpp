#include "bench/report/graph_def.h"

#include <algorithm>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "data/records/protobuf.h"
#include "runtime/memory_plan.h"
#include "runtime/schedule.h"

namespace cnn::bench {
namespace {

using data::ProtobufWriter;

// Field numbers of TensorFlow's messages.
namespace graph_field {
constexpr std::uint64_t node = 1, versions = 4;
}
namespace node_field {
constexpr std::uint64_t name = 1, op = 2, input = 3, attribute = 5;
}
namespace entry_field {
constexpr std::uint64_t key = 1, value = 2;
}
namespace attribute_field {
constexpr std::uint64_t list = 1, type = 6;
}
constexpr std::uint64_t list_shape_field = 7;
constexpr std::uint64_t shape_dimension_field = 2;
constexpr std::uint64_t dimension_size_field = 1;
constexpr std::uint64_t versions_producer_field = 1;
constexpr std::int64_t producer_version = 27;  // as in graphs of TensorFlow 1.15

std::int64_t tensorflow_type(DataType type) {
  switch (type) {
    case DataType::f32:
      return 1;
    case DataType::i32:
      return 3;
    case DataType::u8:
      return 4;
    case DataType::bf16:
      return 14;
    case DataType::f16:
      return 19;
  }
  return 0;
}

void add_attribute(ProtobufWriter& node, std::string_view name, const ProtobufWriter& value) {
  ProtobufWriter entry;
  entry.bytes_field(entry_field::key, name);
  entry.bytes_field(entry_field::value, value.message());
  node.bytes_field(node_field::attribute, entry.message());
}

void add_shape(ProtobufWriter& shapes, const Shape& shape) {
  ProtobufWriter message;
  for (const std::int64_t size : shape) {
    ProtobufWriter dimension;
    dimension.varint_field(dimension_size_field, size);
    message.bytes_field(shape_dimension_field, dimension.message());
  }
  shapes.bytes_field(list_shape_field, message.message());
}

// Adds the attributes that TensorBoard shows: the type of the first result and the shapes of all.
void add_results(ProtobufWriter& node, const Graph& graph, std::span<const TensorId> results) {
  if (results.empty()) {
    return;
  }
  ProtobufWriter type;
  type.varint_field(attribute_field::type, tensorflow_type(graph.info(results.front()).desc.type));
  add_attribute(node, "T", type);
  ProtobufWriter shapes;
  for (const TensorId result : results) {
    add_shape(shapes, graph.info(result).desc.shape);
  }
  ProtobufWriter list;
  list.bytes_field(attribute_field::list, shapes.message());
  add_attribute(node, "_output_shapes", list);
}

std::string name_of_node(const Graph& graph, NodeId node) {
  return to_string(graph, Compute{node});
}

// Returns the name under which a node reads a tensor; nothing for a tensor that contains others,
// which have their own producers.
std::optional<std::string> edge_name(const Graph& graph, TensorId tensor) {
  const std::optional<NodeId> maker = graph.producer(tensor);
  if (!maker) {
    const TensorInfo& info = graph.info(tensor);
    return info.role == Role::activation ? std::nullopt : std::optional(info.name);
  }
  const std::vector<TensorId>& made = graph.nodes()[index_of(*maker)].outputs;
  const auto place = static_cast<std::size_t>(std::ranges::find(made, tensor) - made.begin());
  return name_of_node(graph, *maker) + (place == 0 ? "" : ":" + std::to_string(place));
}

}  // namespace

std::vector<std::byte> graph_def(const Graph& graph) {
  ProtobufWriter message;
  for (std::size_t i = 0; i < graph.tensors().size(); ++i) {
    const TensorId id{static_cast<std::uint32_t>(i)};
    const TensorInfo& info = graph.info(id);
    if (info.role == Role::activation || graph.producer(id)) {
      continue;
    }
    ProtobufWriter node;
    node.bytes_field(node_field::name, info.name);
    node.bytes_field(node_field::op, info.role == Role::input ? "Placeholder" : "VariableV2");
    add_results(node, graph, std::span(&id, 1));
    message.bytes_field(graph_field::node, node.message());
  }
  for (std::size_t i = 0; i < graph.nodes().size(); ++i) {
    const Node& source = graph.nodes()[i];
    ProtobufWriter node;
    node.bytes_field(node_field::name, name_of_node(graph, NodeId{static_cast<std::uint32_t>(i)}));
    node.bytes_field(node_field::op, source.op->name());
    for (const TensorId input : source.inputs) {
      if (const std::optional<std::string> name = edge_name(graph, input)) {
        node.bytes_field(node_field::input, *name);
      }
    }
    add_results(node, graph, source.outputs);
    message.bytes_field(graph_field::node, node.message());
  }
  ProtobufWriter versions;
  versions.varint_field(versions_producer_field, producer_version);
  message.bytes_field(graph_field::versions, versions.message());
  return message.message();
}

}  // namespace cnn::bench
