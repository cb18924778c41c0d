#include "layers/passes/node_names.h"

#include <string>
#include <utility>

#include "layers/passes/rewriter.h"
#include "runtime/schedule.h"

namespace cnn::layers {
namespace {

bool is_generated(const std::string& name) { return name.find('#') != std::string::npos; }

}  // namespace

Rewritten name_by_nodes(const Graph& graph) {
  Rewriter rewriter(graph);
  for (std::size_t n = 0; n < graph.nodes().size(); ++n) {
    const Node& node = graph.nodes()[n];
    const std::string name = to_string(graph, Compute{NodeId{static_cast<std::uint32_t>(n)}});
    Node copy{.op = node.op};
    for (const TensorId input : node.inputs) {
      copy.inputs.push_back(rewriter.now(input));
    }
    for (std::size_t i = 0; i < node.outputs.size(); ++i) {
      TensorInfo info = graph.info(node.outputs[i]);
      if (is_generated(info.name)) {
        info.name = i == 0 ? name : name + ":" + std::to_string(i);
      }
      const TensorId id = rewriter.graph().add_tensor(std::move(info));
      rewriter.moved(node.outputs[i], id);
      copy.outputs.push_back(id);
    }
    rewriter.graph().add_node(std::move(copy));
  }
  return rewriter.finish();
}

}  // namespace cnn::layers
