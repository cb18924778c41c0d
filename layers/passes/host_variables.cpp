#include "layers/passes/host_variables.h"

#include <algorithm>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "layers/host_variable.h"
#include "layers/optimizer.h"
#include "layers/passes/hosted_parameters.h"
#include "layers/passes/rewriter.h"
#include "runtime/error.h"

namespace cnn::layers {
namespace {

constexpr std::size_t near = 4;  // readers at most so many nodes apart share one load

// Copies the graph in an order in which each hosted parameter is read before its gradient is made.
class HostPlacer {
 public:
  HostPlacer(const Graph& graph, std::vector<Hosted> hosted)
      : graph_(graph),
        rewriter_(graph),
        hosted_(std::move(hosted)),
        loads_(hosted_.size()),
        left_(hosted_.size()),
        updates_(hosted_.size()),
        sums_(graph.tensors().size()),
        is_copied_(graph.nodes().size()) {
    for (std::size_t h = 0; h < hosted_.size(); ++h) {
      of_parameter_[hosted_[h].parameter] = h;
      left_[h] = hosted_[h].readers.size();
      updates_[h].resize(hosted_[h].gradients.size());
      for (std::size_t g = 0; g < hosted_[h].gradients.size(); ++g) {
        const NodeIndex made = hosted_[h].gradients[g].made;
        by_gradient_[made].emplace_back(h, g);
        note_conversion(made);
      }
      if (hosted_[h].is_trained()) {
        by_update_[hosted_[h].update].push_back(h);
      }
      if (hosted_[h].joined != no_node) {
        is_copied_[hosted_[h].joined] = true;  // its parts are updated one by one instead
      }
    }
  }

  Rewritten place() {
    for (NodeIndex n = 0; n < graph_.nodes().size(); ++n) {
      copy(n);
    }
    return rewriter_.finish();
  }

 private:
  struct Load {
    TensorId tensor{};
    std::size_t last_use = 0;  // number of nodes copied before it
  };
  // The update for one gradient of a parameter.
  struct PartUpdate {
    bool is_made = false;        // the gradient is there
    std::vector<TensorId> sums;  // of squares, by slice; empty: not updated yet
  };

  // A conversion of a gradient follows what it converts, so that the update need not wait.
  void note_conversion(NodeIndex made) {
    const std::vector<TensorId>& inputs = graph_.nodes()[made].inputs;
    if (inputs.size() == 1 && graph_.producer(inputs.front())) {
      conversion_of_[index_of(*graph_.producer(inputs.front()))] = made;
    }
  }

  // Copies the readers of the parameters whose gradients this node makes, or what is converted to
  // them.
  void copy_readers_before(NodeIndex n) {
    const auto conversion = conversion_of_.find(n);
    const auto found =
        by_gradient_.find(conversion == conversion_of_.end() ? n : conversion->second);
    if (found != by_gradient_.end()) {
      for (const auto& [h, gradient] : found->second) {
        copy_readers_of(hosted_[h], n);
      }
    }
  }

  // Copies later readers of the parameter that need nothing made from node `n` on, with the nodes
  // that read what their conversions make.
  void copy_readers_of(const Hosted& hosted, NodeIndex n) {
    std::vector<TensorId> wanted{hosted.parameter};
    for (NodeIndex reader = n + 1; reader < graph_.nodes().size(); ++reader) {
      const Node& node = graph_.nodes()[reader];
      const bool reads = std::ranges::any_of(node.inputs, [&](TensorId input) {
        return std::ranges::find(wanted, input) != wanted.end();
      });
      if (reads && reader != hosted.update && is_ready(node)) {
        const bool converts = node.inputs.size() == 1;
        copy(reader);
        if (converts) {
          wanted.insert(wanted.end(), node.outputs.begin(), node.outputs.end());
        }
      }
    }
  }

  bool is_ready(const Node& node) const {
    return std::ranges::all_of(node.inputs, [&](TensorId input) {
      const std::optional<NodeId> made = graph_.producer(input);
      return !made || is_copied_[index_of(*made)];
    });
  }

  void copy(NodeIndex n) {
    if (is_copied_[n]) {
      return;
    }
    copy_readers_before(n);
    is_copied_[n] = true;
    const Node& node = graph_.nodes()[n];
    if (by_update_.contains(n)) {
      copy_rest_of_update(n);
    } else if (as<SumInOrder>(node) != nullptr) {
      copy_sum(node);
    } else if (!load_rows(node)) {
      copy_reader(node);
    }
    for (const TensorId input : node.inputs) {
      if (const auto h = of_parameter_.find(input);
          h != of_parameter_.end() && hosted_[h->second].update != n) {
        --left_[h->second];
        update_what_is_made(h->second);
      }
    }
    if (const auto found = by_gradient_.find(n); found != by_gradient_.end()) {
      for (const auto& [h, gradient] : found->second) {
        updates_[h][gradient].is_made = true;
        update_what_is_made(h);
      }
    }
    if (const auto found = conversion_of_.find(n); found != conversion_of_.end()) {
      copy(found->second);
    }
  }

  // Once nothing reads the parameter any more, updates the parts whose gradients are there.
  void update_what_is_made(std::size_t h) {
    if (left_[h] > 0) {
      return;
    }
    std::vector<PartUpdate>& parts = updates_[h];
    for (std::size_t g = 0; g < parts.size(); ++g) {
      if (parts[g].is_made && parts[g].sums.empty()) {
        parts[g].sums = update_in_slices(hosted_[h], hosted_[h].gradients[g]);
      }
    }
    const auto is_updated = [](const PartUpdate& part) { return !part.sums.empty(); };
    if (!parts.empty() && std::ranges::all_of(parts, is_updated) &&
        !sum_of_.contains(hosted_[h].parameter)) {
      std::vector<TensorId> sums;
      for (const PartUpdate& part : parts) {
        sums.insert(sums.end(), part.sums.begin(), part.sums.end());
      }
      sum_of_[hosted_[h].parameter] = append(HalfSumOfSlices(), std::move(sums)).front();
    }
  }

  // Loads the rows of a parameter on the host that a node copies; returns whether it does so.
  bool load_rows(const Node& node) {
    const SliceBatch* const slice = rows_of_parameter(graph_, node);
    if (slice == nullptr || !of_parameter_.contains(node.inputs[0])) {
      return false;
    }
    const Shape& rows = graph_.info(node.outputs[0]).desc.shape;
    const std::int64_t first = rows.elements() / rows[0] * slice->first;
    const TensorId loaded = append(LoadVariable(first, rows), {rewriter_.now(node.inputs[0])})[0];
    rewriter_.moved(node.outputs[0], loaded);
    return true;
  }

  void copy_reader(const Node& node) {
    Node copied{.op = node.op, .inputs = {}, .outputs = {}};
    for (const TensorId input : node.inputs) {
      copied.inputs.push_back(loaded(input));
    }
    for (const TensorId output : node.outputs) {
      copied.outputs.push_back(rewriter_.graph().add_tensor(graph_.info(output)));
      rewriter_.moved(output, copied.outputs.back());
    }
    add(std::move(copied));
  }

  // Returns the tensor that a node reads in place of an old one: of a hosted parameter a load.
  TensorId loaded(TensorId old) {
    const auto hosted = of_parameter_.find(old);
    if (hosted == of_parameter_.end()) {
      return rewriter_.now(old);
    }
    std::optional<Load>& load = loads_[hosted->second];
    if (!load || added_ > load->last_use + near) {
      load = Load{.tensor = append(LoadVariable(), {rewriter_.now(old)}).front()};
    }
    load->last_use = added_;
    return load->tensor;
  }

  // Appends a node whose outputs are new tensors.
  template <class O>
  std::vector<TensorId> append(O op, std::vector<TensorId> inputs) {
    Graph& graph = rewriter_.graph();
    std::vector<TensorDesc> in;
    for (const TensorId input : inputs) {
      in.push_back(graph.info(input).desc);
    }
    Node node{.op = std::make_shared<const O>(std::move(op)), .inputs = std::move(inputs)};
    for (TensorDesc& desc : node.op->infer(in)) {
      const std::string name = std::string(node.op->name()) + "#" + std::to_string(added_);
      node.outputs.push_back(graph.add_tensor({.name = name, .desc = std::move(desc)}));
    }
    add(node);
    return node.outputs;
  }

  void add(Node node) {
    rewriter_.graph().add_node(std::move(node));
    ++added_;
  }

  // Returns the sums of squares of the slices.
  std::vector<TensorId> update_in_slices(const Hosted& hosted, const HostedGradient& part) {
    const Node& node = graph_.nodes()[hosted.update];
    const Update& op = *as<Update>(node);
    std::vector<TensorId> variables{rewriter_.now(hosted.parameter)};
    for (std::size_t s = 0; s < op.slots(); ++s) {
      variables.push_back(
          rewriter_.now(node.inputs[op.first_slot() + s * op.parameters + hosted.index]));
    }
    const TensorId gradient = rewriter_.now(part.tensor);
    const std::int64_t elements = stored_floats(graph_.info(part.tensor).desc);
    std::vector<TensorId> sums;
    for (std::int64_t first = 0; first < elements; first += elements_per_update) {
      const std::int64_t count = std::min(elements_per_update, elements - first);
      std::vector<TensorId> in;
      for (std::size_t i = 0; i < op.first_parameter(); ++i) {
        in.push_back(rewriter_.now(node.inputs[i]));
      }
      std::vector<TensorId> slices;
      for (const TensorId variable : variables) {
        slices.push_back(append(LoadVariable(part.first + first, {count}), {variable}).front());
        in.push_back(slices.back());
        if (slices.size() == 1) {
          in.push_back(gradient);
        }
      }
      sums.push_back(append(UpdateSlice(attributes_of(op, hosted.index, 1), first), in).front());
      for (std::size_t v = 0; v < variables.size(); ++v) {
        append(StoreVariable(part.first + first), {slices[v], variables[v]});
      }
    }
    return sums;
  }

  // Copies an update in runs of parameters that stay on the device. The sums keep their order.
  void copy_rest_of_update(NodeIndex n) {
    const Node& node = graph_.nodes()[n];
    const Update& op = *as<Update>(node);
    std::vector<TensorId>& sums = sums_[index_of(node.outputs[0])];
    for (std::size_t begin = 0; begin < op.parameters;) {
      const auto is_hosted = [&](std::size_t p) {
        return of_parameter_.contains(node.inputs[op.first_parameter() + p]);
      };
      if (is_hosted(begin)) {
        const auto sum = sum_of_.find(node.inputs[op.first_parameter() + begin]);
        check(sum != sum_of_.end(), "a parameter on the host is read after its update");
        sums.push_back(sum->second);
        ++begin;
        continue;
      }
      std::size_t end = begin;
      while (end < op.parameters && !is_hosted(end)) {
        ++end;
      }
      sums.push_back(copy_run(node, begin, end - begin));
      begin = end;
    }
  }

  TensorId copy_run(const Node& node, std::size_t first, std::size_t count) {
    const Update& op = *as<Update>(node);
    std::vector<TensorId> in;
    const auto add_from = [&](std::size_t begin, std::size_t n) {
      for (std::size_t i = begin; i < begin + n; ++i) {
        in.push_back(rewriter_.now(node.inputs[i]));
      }
    };
    add_from(0, op.first_parameter());
    for (std::size_t list = op.first_parameter(); list < op.first_copy(); list += op.parameters) {
      add_from(list + first, count);
    }
    for (std::size_t p = first; p < first + count; ++p) {
      if (const std::optional<std::size_t> copy = op.copy_of(p)) {
        add_from(*copy, 1);
      }
    }
    return append(Update(attributes_of(op, first, count), count), std::move(in)).front();
  }

  void copy_sum(const Node& node) {
    std::vector<TensorId> in;
    for (const TensorId input : node.inputs) {
      const std::vector<TensorId>& parts = sums_[index_of(input)];
      if (parts.empty()) {
        in.push_back(rewriter_.now(input));
      }
      in.insert(in.end(), parts.begin(), parts.end());
    }
    Node copied{.op = node.op, .inputs = std::move(in), .outputs = {}};
    copied.outputs.push_back(rewriter_.graph().add_tensor(graph_.info(node.outputs[0])));
    rewriter_.moved(node.outputs[0], copied.outputs.front());
    add(std::move(copied));
  }

  const Graph& graph_;
  Rewriter rewriter_;
  std::vector<Hosted> hosted_;
  std::map<TensorId, std::size_t> of_parameter_;             // index in hosted_
  std::map<NodeIndex, std::vector<std::size_t>> by_update_;  // indices in hosted_
  // Indices in hosted_ and in its gradients.
  std::map<NodeIndex, std::vector<std::pair<std::size_t, std::size_t>>> by_gradient_;
  std::map<NodeIndex, NodeIndex> conversion_of_;  // by what makes a gradient
  std::vector<std::optional<Load>> loads_;        // by index in hosted_: the latest
  std::vector<std::size_t> left_;                 // by index in hosted_: readers to be copied
  std::vector<std::vector<PartUpdate>> updates_;  // by index in hosted_, then in its gradients
  std::map<TensorId, TensorId> sum_of_;           // by old parameter: the half sum of its squares
  std::vector<std::vector<TensorId>> sums_;       // by old TensorId: what an update's sum becomes
  std::vector<bool> is_copied_;                   // by old node
  std::size_t added_ = 0;                         // new nodes
};

}  // namespace

Rewritten place_variables_on_host(const Graph& graph, const KernelTable& table,
                                  const IsOnHost& is_on_host) {
  return HostPlacer(graph, find_hosted(graph, table, is_on_host)).place();
}

}  // namespace cnn::layers
