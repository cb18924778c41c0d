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
#include "layers/passes/rewriter.h"
#include "runtime/error.h"

namespace cnn::layers {
namespace {

using NodeNumber = std::size_t;
constexpr NodeNumber no_node = ~NodeNumber{0};
constexpr std::int64_t slice_elements = std::int64_t{1} << 20U;  // whole parts of all kernels
constexpr std::size_t near = 4;  // readers at most so many nodes apart share one load

// A parameter that lies on the host.
struct Hosted {
  TensorId parameter{};
  std::vector<NodeNumber> readers;  // without its update, ascending
  // In training:
  NodeNumber update = no_node, gradient_made = no_node;
  std::size_t index = 0;  // among the parameters of the update

  bool is_trained() const { return update != no_node; }
};

// Finds the parameters that may lie on the host.
class HostedFinder {
 public:
  HostedFinder(const Graph& graph, const KernelTable& table)
      : graph_(graph), table_(table), users_(graph.tensors().size()) {
    for (NodeNumber n = 0; n < graph.nodes().size(); ++n) {
      for (const TensorId input : graph.nodes()[n].inputs) {
        users_[index_of(input)].push_back(n);
      }
    }
  }

  std::vector<Hosted> find(const IsOnHost& is_on_host) const {
    std::vector<Hosted> found;
    for (std::uint32_t t = 0; t < users_.size(); ++t) {
      const TensorInfo& info = graph_.info(TensorId{t});
      if (info.role == Role::parameter && info.desc.type == DataType::f32 && is_on_host(info)) {
        if (std::optional<Hosted> hosted = hosted_of(TensorId{t})) {
          found.push_back(*std::move(hosted));
        }
      }
    }
    return found;
  }

 private:
  std::optional<Hosted> hosted_of(TensorId parameter) const {
    Hosted hosted{.parameter = parameter, .readers = {}};
    for (const NodeNumber n : users_[index_of(parameter)]) {
      if (as<Update>(graph_.nodes()[n]) == nullptr) {
        hosted.readers.push_back(n);
      } else if (std::exchange(hosted.update, n) != no_node) {
        return std::nullopt;
      }
    }
    const auto mutates = [&](NodeNumber n) {
      const Node& node = graph_.nodes()[n];
      for (std::size_t i = 0; i < node.inputs.size(); ++i) {
        if (node.inputs[i] == parameter && node.op->mutates(i)) {
          return true;
        }
      }
      return false;
    };
    if (hosted.readers.empty() || std::ranges::any_of(hosted.readers, mutates) ||
        (hosted.is_trained() && !find_update(hosted))) {
      return std::nullopt;
    }
    return hosted;
  }

  bool find_update(Hosted& hosted) const {
    const Node& node = graph_.nodes()[hosted.update];
    const Update& op = *as<Update>(node);
    const auto place = std::ranges::find(node.inputs, hosted.parameter) - node.inputs.begin();
    hosted.index = static_cast<std::size_t>(place) - op.first_parameter();
    const TensorId gradient = node.inputs[op.first_gradient() + hosted.index];
    const std::optional<NodeId> made = graph_.producer(gradient);
    if (!made || op.attributes.automatic_loss_scale || op.copy_of(hosted.index) ||
        graph_.info(gradient).desc.bytes() != graph_.info(hosted.parameter).desc.bytes() ||
        !std::ranges::all_of(users_[index_of(node.outputs[0])], [&](NodeNumber n) {
          return as<SumInOrder>(graph_.nodes()[n]) != nullptr;
        })) {
      return false;
    }
    hosted.gradient_made = index_of(*made);
    return runs_in_slices(hosted);
  }

  bool runs_in_slices(const Hosted& hosted) const;

  const Graph& graph_;
  const KernelTable& table_;
  std::vector<std::vector<NodeNumber>> users_;  // by TensorId, ascending
};

// Returns the attributes of an update for some of its parameters.
UpdateAttributes attributes_of(const Update& op, std::size_t first, std::size_t count) {
  UpdateAttributes attributes = op.attributes;
  attributes.decay.assign(op.attributes.decay.begin() + static_cast<std::ptrdiff_t>(first),
                          op.attributes.decay.begin() + static_cast<std::ptrdiff_t>(first + count));
  attributes.copied.clear();
  for (const std::size_t copied : op.attributes.copied) {
    if (first <= copied && copied < first + count) {
      attributes.copied.push_back(copied - first);
    }
  }
  return attributes;
}

TensorDesc slice_desc(std::int64_t elements) {
  return {.shape = Shape{elements}, .type = DataType::f32};
}

// Asks for the kernels of one slice.
bool HostedFinder::runs_in_slices(const Hosted& hosted) const {
  const Node& node = graph_.nodes()[hosted.update];
  const Update& op = *as<Update>(node);
  const UpdateSlice slice(attributes_of(op, hosted.index, 1), 0);
  const std::int64_t elements =
      std::min(slice_elements, stored_floats(graph_.info(hosted.parameter).desc));
  Signature request;
  for (std::size_t i = 0; i < op.first_parameter(); ++i) {
    request.in.push_back(graph_.info(node.inputs[i]).desc);
  }
  request.in.push_back(slice_desc(elements));
  request.in.push_back(graph_.info(node.inputs[op.first_gradient() + hosted.index]).desc);
  request.in.insert(request.in.end(), op.slots(), slice_desc(elements));
  request.out = slice.infer(request.in);
  const Signature sums{.in = request.out, .out = HalfSumOfSlices().infer(request.out)};
  const auto as_requested = [](const std::optional<KernelSpec>& spec, const Signature& signature) {
    return spec && spec->in == signature.in && spec->out == signature.out;
  };
  return as_requested(table_.describe(slice, request), request) &&
         as_requested(table_.describe(HalfSumOfSlices(), sums), sums);
}

// Copies the graph in an order in which each hosted parameter is read before its gradient is made.
class HostPlacer {
 public:
  HostPlacer(const Graph& graph, std::vector<Hosted> hosted)
      : graph_(graph),
        rewriter_(graph),
        hosted_(std::move(hosted)),
        loads_(hosted_.size()),
        left_(hosted_.size()),
        sums_(graph.tensors().size()),
        is_copied_(graph.nodes().size()) {
    for (std::size_t h = 0; h < hosted_.size(); ++h) {
      of_parameter_[hosted_[h].parameter] = h;
      left_[h] = hosted_[h].readers.size() + 1;
      if (hosted_[h].is_trained()) {
        by_gradient_[hosted_[h].gradient_made].push_back(h);
        by_update_[hosted_[h].update].push_back(h);
      }
    }
  }

  Rewritten place() {
    for (NodeNumber n = 0; n < graph_.nodes().size(); ++n) {
      if (const auto found = by_gradient_.find(n); found != by_gradient_.end()) {
        for (const std::size_t h : found->second) {
          copy_readers_of(hosted_[h], n);
        }
      }
      copy(n);
    }
    return rewriter_.finish();
  }

 private:
  struct Load {
    TensorId tensor{};
    std::size_t last_use = 0;  // number of nodes copied before it
  };

  // Copies later readers of the parameter that need nothing made from node `n` on, with the nodes
  // that read what their conversions make.
  void copy_readers_of(const Hosted& hosted, NodeNumber n) {
    std::vector<TensorId> wanted{hosted.parameter};
    for (NodeNumber reader = n + 1; reader < graph_.nodes().size(); ++reader) {
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

  void copy(NodeNumber n) {
    if (is_copied_[n]) {
      return;
    }
    is_copied_[n] = true;
    const Node& node = graph_.nodes()[n];
    if (by_update_.contains(n)) {
      copy_rest_of_update(n);
    } else if (as<SumInOrder>(node) != nullptr) {
      copy_sum(node);
    } else {
      copy_reader(node);
    }
    for (const TensorId input : node.inputs) {
      if (const auto h = of_parameter_.find(input);
          h != of_parameter_.end() && hosted_[h->second].update != n) {
        finish_one(h->second);
      }
    }
    if (const auto found = by_gradient_.find(n); found != by_gradient_.end()) {
      std::ranges::for_each(found->second, [this](std::size_t h) { finish_one(h); });
    }
  }

  // Counts a reader, or the node that makes the gradient; the update follows the last of them.
  void finish_one(std::size_t h) {
    if (--left_[h] == 0 && hosted_[h].is_trained()) {
      update_in_slices(hosted_[h]);
    }
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

  void update_in_slices(const Hosted& hosted) {
    const Node& node = graph_.nodes()[hosted.update];
    const Update& op = *as<Update>(node);
    std::vector<TensorId> variables{rewriter_.now(hosted.parameter)};
    for (std::size_t s = 0; s < op.slots(); ++s) {
      variables.push_back(
          rewriter_.now(node.inputs[op.first_slot() + s * op.parameters + hosted.index]));
    }
    const TensorId gradient = rewriter_.now(node.inputs[op.first_gradient() + hosted.index]);
    const std::int64_t elements = stored_floats(graph_.info(hosted.parameter).desc);
    std::vector<TensorId> sums;
    for (std::int64_t first = 0; first < elements; first += slice_elements) {
      const std::int64_t count = std::min(slice_elements, elements - first);
      std::vector<TensorId> in;
      for (std::size_t i = 0; i < op.first_parameter(); ++i) {
        in.push_back(rewriter_.now(node.inputs[i]));
      }
      std::vector<TensorId> slices;
      for (const TensorId variable : variables) {
        slices.push_back(append(LoadVariable(first, count), {variable}).front());
        in.push_back(slices.back());
        if (slices.size() == 1) {
          in.push_back(gradient);
        }
      }
      sums.push_back(append(UpdateSlice(attributes_of(op, hosted.index, 1), first), in).front());
      for (std::size_t v = 0; v < variables.size(); ++v) {
        append(StoreVariable(first), {slices[v], variables[v]});
      }
    }
    sum_of_[hosted.parameter] = append(HalfSumOfSlices(), sums).front();
  }

  // Copies an update in runs of parameters that stay on the device. The sums keep their order.
  void copy_rest_of_update(NodeNumber n) {
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
  std::map<TensorId, std::size_t> of_parameter_;                            // index in hosted_
  std::map<NodeNumber, std::vector<std::size_t>> by_gradient_, by_update_;  // indices in hosted_
  std::vector<std::optional<Load>> loads_;   // by index in hosted_: the latest
  std::vector<std::size_t> left_;            // by index in hosted_: nodes before its update
  std::map<TensorId, TensorId> sum_of_;      // by old parameter: the half sum of its squares
  std::vector<std::vector<TensorId>> sums_;  // by old TensorId: what an update's sum becomes
  std::vector<bool> is_copied_;              // by old node
  std::size_t added_ = 0;                    // new nodes
};

}  // namespace

Rewritten place_variables_on_host(const Graph& graph, const KernelTable& table,
                                  const IsOnHost& is_on_host) {
  return HostPlacer(graph, HostedFinder(graph, table).find(is_on_host)).place();
}

}  // namespace cnn::layers
