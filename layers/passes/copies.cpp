#include "layers/passes/copies.h"

#include <algorithm>
#include <map>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "layers/elementwise.h"
#include "layers/optimizer.h"
#include "layers/passes/rewriter.h"

namespace cnn::layers {
namespace {

// A Convert node whose result an Update can write.
struct Copy {
  std::size_t parameter = 0;  // index among those of the Update
  std::size_t convert = 0;    // NodeId
  TensorId made{};
};

class CopyFinder {
 public:
  CopyFinder(const Graph& graph, const KernelTable& table)
      : graph_(graph),
        table_(table),
        last_reader_(graph.tensors().size()),
        mutations_(graph.tensors().size()) {
    for (std::size_t n = 0; n < graph.nodes().size(); ++n) {
      const Node& node = graph.nodes()[n];
      for (std::size_t i = 0; i < node.inputs.size(); ++i) {
        last_reader_[index_of(node.inputs[i])] = n;
        mutations_[index_of(node.inputs[i])] += node.op->mutates(i) ? 1 : 0;
      }
      if (as<Convert>(node) != nullptr) {
        converts_[node.inputs[0]].push_back(n);
      }
    }
    for (const Output& output : graph.outputs()) {  // read after all nodes have run
      last_reader_[index_of(output.tensor)] = graph.nodes().size();
    }
  }

  // Returns the copies that an Update node writes, by parameter; empty if its kernel cannot write
  // them.
  std::vector<Copy> copies_of(std::size_t node) const {
    const auto& update = *as<Update>(graph_.nodes()[node]);
    std::vector<Copy> copies;
    for (std::size_t p = 0; p < update.parameters; ++p) {
      if (const std::optional<std::size_t> convert = convert_for(node, p)) {
        copies.push_back({.parameter = p,
                          .convert = *convert,
                          .made = graph_.nodes()[*convert].outputs.front()});
      }
    }
    return can_write(graph_.nodes()[node], copies) ? copies : std::vector<Copy>();
  }

 private:
  const TensorDesc& desc(TensorId id) const { return graph_.info(id).desc; }

  std::optional<std::size_t> convert_for(std::size_t update, std::size_t parameter) const {
    const Node& node = graph_.nodes()[update];
    const TensorId id = node.inputs[as<Update>(node)->first_parameter() + parameter];
    const auto found = converts_.find(id);
    if (found == converts_.end() || mutations_[index_of(id)] != 1) {
      return std::nullopt;
    }
    for (const std::size_t convert : found->second) {
      const TensorId made = graph_.nodes()[convert].outputs.front();
      TensorDesc same = desc(made);
      same.type = desc(id).type;
      if (same == desc(id) && size_of(desc(made).type) == 2 && convert < update &&
          last_reader_[index_of(made)] < update && mutations_[index_of(made)] == 0) {
        return convert;
      }
    }
    return std::nullopt;
  }

  bool can_write(const Node& node, const std::vector<Copy>& copies) const {
    Update op = *as<Update>(node);
    Signature request;
    for (const TensorId input : node.inputs) {
      request.in.push_back(desc(input));
    }
    for (const Copy& copy : copies) {
      request.in.push_back(desc(copy.made));
      op.attributes.copied.push_back(copy.parameter);
    }
    for (const TensorId output : node.outputs) {
      request.out.push_back(desc(output));
    }
    const std::optional<KernelSpec> spec = table_.describe(op, request);
    return spec && spec->in == request.in && spec->out == request.out;
  }

  const Graph& graph_;
  const KernelTable& table_;
  std::map<TensorId, std::vector<std::size_t>> converts_;  // by their input
  std::vector<std::size_t> last_reader_;                   // by TensorId: NodeId
  std::vector<int> mutations_;  // by TensorId: how many operands mutate it
};

void append_copies(Rewriter& rewriter, const Node& node, const std::vector<Copy>& copies) {
  UpdateAttributes attributes = as<Update>(node)->attributes;
  std::vector<TensorId> inputs = node.inputs;
  for (const Copy& copy : copies) {
    attributes.copied.push_back(copy.parameter);
    inputs.push_back(copy.made);
  }
  rewriter.copy(std::make_shared<const Update>(std::move(attributes), as<Update>(node)->parameters),
                inputs, node.outputs);
}

}  // namespace

PrologueSplit keep_copies(const Graph& graph, const KernelTable& table) {
  const CopyFinder finder(graph, table);
  std::vector<bool> taken(graph.nodes().size());
  Rewriter rewriter(graph);  // a node for each node: every NodeId stays valid
  for (std::size_t n = 0; n < graph.nodes().size(); ++n) {
    const Node& node = graph.nodes()[n];
    const std::vector<Copy> copies =
        as<Update>(node) != nullptr ? finder.copies_of(n) : std::vector<Copy>();
    if (copies.empty()) {
      rewriter.copy(node);
      continue;
    }
    for (const Copy& copy : copies) {
      taken[copy.convert] = true;
    }
    append_copies(rewriter, node, copies);
  }
  return split_prologue(*rewriter.finish().graph, taken);
}

}  // namespace cnn::layers
