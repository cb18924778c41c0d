#include "layers/passes/rewriter.h"

#include <utility>

#include "runtime/error.h"

namespace cnn::layers {

Rewriter::Rewriter(const Graph& old, std::span<const std::optional<TensorDesc>> persistent)
    : old_(old), graph_(std::make_shared<Graph>(old.traits())), was_(old.tensors().size()) {
  for (std::size_t i = 0; i < was_.size(); ++i) {
    TensorInfo info = old.tensors()[i];
    if (info.role != Role::activation) {
      if (i < persistent.size() && persistent[i]) {
        info.desc = *persistent[i];
      }
      was_[i] = graph_->add_tensor(std::move(info));
    }
  }
}

TensorId Rewriter::now(TensorId old) const {
  const std::optional<TensorId>& id = was_[index_of(old)];
  check(id.has_value(), "a rewrite reads " + old_.info(old).name + " before it is made");
  return *id;
}

void Rewriter::copy(std::shared_ptr<const Op> op, std::span<const TensorId> old_inputs,
                    std::span<const TensorId> old_outputs) {
  Node node{.op = std::move(op)};
  for (const TensorId input : old_inputs) {
    node.inputs.push_back(now(input));
  }
  for (const TensorId output : old_outputs) {
    const TensorId id = graph_->add_tensor(old_.info(output));
    was_[index_of(output)] = id;
    node.outputs.push_back(id);
  }
  graph_->add_node(std::move(node));
}

Rewritten Rewriter::finish() {
  for (const Output& output : old_.outputs()) {
    graph_->output(output.name, {graph_.get(), now(output.tensor)});
  }
  return {.graph = std::move(graph_), .was = std::move(was_)};
}

Rewritten copy_of(const Graph& graph) {
  Rewriter rewriter(graph);
  for (const Node& node : graph.nodes()) {
    rewriter.copy(node);
  }
  return rewriter.finish();
}

bool runs(const KernelTable& table, const Op& op, std::vector<TensorDesc> in, Layout image) {
  Signature request{.in = std::move(in), .out = {}};
  request.out = op.infer(request.in);
  for (auto* descs : {&request.in, &request.out}) {
    for (TensorDesc& desc : *descs) {
      desc.layout = desc.shape.rank() == 4 ? image : desc.layout;
    }
  }
  const std::optional<KernelSpec> spec = table.describe(op, request);
  return spec && spec->by != Provider::loops;
}

std::vector<std::size_t> count_readers(const Graph& graph) {
  std::vector<std::size_t> readers(graph.tensors().size());
  for (const Node& node : graph.nodes()) {
    for (const TensorId input : node.inputs) {
      ++readers[index_of(input)];
    }
  }
  for (const Output& output : graph.outputs()) {
    ++readers[index_of(output.tensor)];
  }
  return readers;
}

}  // namespace cnn::layers
