#include "layers/passes/prologue.h"

#include <algorithm>
#include <optional>
#include <string>

#include "runtime/access.h"
#include "runtime/error.h"

namespace cnn::layers {
namespace {

class PrologueSplitter {
 public:
  PrologueSplitter(const Graph& graph, const std::vector<bool>& taken)
      : graph_(graph), taken_(taken), needed_(graph.tensors().size()) {
    for (std::size_t n = 0; n < taken.size(); ++n) {
      for (const TensorId input : graph.nodes()[n].inputs) {
        needed_[index_of(input)] = needed_[index_of(input)] || !taken[n];
      }
    }
    for (const Output& output : graph.outputs()) {
      needed_[index_of(output.tensor)] = true;
    }
  }

  std::shared_ptr<Graph> step() const {
    auto step = std::make_shared<Graph>(graph_.traits());
    Places places(graph_.tensors().size());
    for (std::size_t i = 0; i < places.size(); ++i) {
      if (!is_made_before(i) || needed_[i]) {
        places[i] = step->add_tensor(info(i));
      }
    }
    copy_nodes(*step, false, places);
    for (const Output& output : graph_.outputs()) {
      step->output(output.name, {step.get(), *places[index_of(output.tensor)]});
    }
    return step;
  }

  std::shared_ptr<Graph> prologue() const {
    auto prologue = std::make_shared<Graph>(graph_.traits());
    Places places(graph_.tensors().size());
    for (std::size_t n = 0; n < taken_.size(); ++n) {
      const Node& node = graph_.nodes()[n];
      if (taken_[n]) {
        place(*prologue, node.inputs, places);
        place(*prologue, node.outputs, places);
      }
    }
    copy_nodes(*prologue, true, places);
    return prologue;
  }

 private:
  using Places = std::vector<std::optional<TensorId>>;  // by TensorId of the graph

  bool is_made_before(std::size_t tensor) const {
    const auto producer = graph_.producer(TensorId{static_cast<std::uint32_t>(tensor)});
    return producer && taken_[index_of(*producer)];
  }

  TensorInfo info(std::size_t tensor) const {
    TensorInfo info = graph_.tensors()[tensor];
    if (is_made_before(tensor) && needed_[tensor]) {
      info.role = Role::derived;
      info.name += ":" + std::to_string(tensor);  // several conversions of one tensor share a name
    }
    return info;
  }

  void place(Graph& to, const std::vector<TensorId>& tensors, Places& places) const {
    for (const TensorId id : tensors) {
      const std::size_t tensor = index_of(id);
      check(is_persistent(graph_.info(id).role) || is_made_before(tensor),
            "a prologue cannot read " + graph_.info(id).name + ", which a step makes");
      if (!places[tensor]) {
        places[tensor] = to.add_tensor(info(tensor));
      }
    }
  }

  void copy_nodes(Graph& to, bool taken, const Places& places) const {
    for (std::size_t n = 0; n < taken_.size(); ++n) {
      if (taken_[n] != taken) {
        continue;
      }
      Node copy{.op = graph_.nodes()[n].op};
      for (const TensorId id : graph_.nodes()[n].inputs) {
        copy.inputs.push_back(*places[index_of(id)]);
      }
      for (const TensorId id : graph_.nodes()[n].outputs) {
        copy.outputs.push_back(*places[index_of(id)]);
      }
      to.add_node(std::move(copy));
    }
  }

  const Graph& graph_;
  const std::vector<bool>& taken_;
  std::vector<bool> needed_;  // by TensorId: read by the step or an output
};

}  // namespace

PrologueSplit split_prologue(const Graph& graph, const std::vector<bool>& taken) {
  check(taken.size() == graph.nodes().size(), "split_prologue: one entry for each node");
  const PrologueSplitter splitter(graph, taken);
  PrologueSplit divided{.step = splitter.step(), .prologue = nullptr};
  if (std::ranges::find(taken, true) != taken.end()) {
    divided.prologue = splitter.prologue();
  }
  return divided;
}

}  // namespace cnn::layers
