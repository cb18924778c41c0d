#include "bench/plan/graph_dot.h"

#include <cstdint>
#include <fmt/format.h>

#include "runtime/schedule.h"

namespace cnn::bench {
namespace {

std::string dot_text(std::string_view text) {
  std::string result;
  for (const char c : text) {
    if (c == '"' || c == '\\') {
      result += '\\';
    }
    result += c;
  }
  return result;
}

std::string node_label(const Graph& graph, NodeId id) {
  const Node& node = graph.nodes()[index_of(id)];
  const std::string name = to_string(graph, Compute{id});
  std::string label = dot_text(name);
  for (const TensorId output : node.outputs) {
    const TensorInfo& info = graph.info(output);
    const std::string named = info.name == name ? std::string() : info.name + " ";
    label += fmt::format("\\n{}", dot_text(named + to_string(info.desc)));
  }
  for (const TensorId input : node.inputs) {
    const TensorInfo& info = graph.info(input);
    if (info.role != Role::activation && info.role != Role::input) {
      label += fmt::format("\\n[{}]", dot_text(info.name));
    }
  }
  return label;
}

// A part inside another tensor has a producer; a root that is made of its parts has no edge.
std::string edge_text(const Graph& graph, TensorId tensor, std::size_t reader) {
  const TensorInfo& info = graph.info(tensor);
  if (const std::optional<NodeId> maker = graph.producer(tensor)) {
    return fmt::format("  n{} -> n{};\n", index_of(*maker), reader);
  }
  return info.role == Role::input ? fmt::format("  t{} -> n{};\n", index_of(tensor), reader) : "";
}

}  // namespace

std::string graph_dot(const Graph& graph) {
  std::string text = "digraph step {\n  node [shape=box, fontname=\"sans-serif\", fontsize=10];\n";
  for (const TensorId input : graph.inputs()) {
    const TensorInfo& info = graph.info(input);
    text += fmt::format("  t{} [shape=oval, label=\"{}\\n{}\"];\n", index_of(input),
                        dot_text(info.name), dot_text(to_string(info.desc)));
  }
  for (std::size_t i = 0; i < graph.nodes().size(); ++i) {
    text += fmt::format("  n{} [label=\"{}\"];\n", i,
                        node_label(graph, NodeId{static_cast<std::uint32_t>(i)}));
    for (const TensorId input : graph.nodes()[i].inputs) {
      text += edge_text(graph, input, i);
    }
  }
  return text + "}\n";
}

}  // namespace cnn::bench
