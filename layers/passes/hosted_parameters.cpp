#include "layers/passes/hosted_parameters.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "layers/host_variable.h"
#include "layers/operands.h"
#include "layers/passes/rewriter.h"

namespace cnn::layers {
namespace {

// Finds the parameters that may lie on the host.
class HostedFinder {
 public:
  HostedFinder(const Graph& graph, const KernelTable& table)
      : graph_(graph), table_(table), users_(graph.tensors().size()) {
    for (NodeIndex n = 0; n < graph.nodes().size(); ++n) {
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
    for (const NodeIndex n : users_[index_of(parameter)]) {
      if (as<Update>(graph_.nodes()[n]) == nullptr) {
        hosted.readers.push_back(n);
      } else if (std::exchange(hosted.update, n) != no_node) {
        return std::nullopt;
      }
    }
    const auto mutates = [&](NodeIndex n) {
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
    if (!graph_.producer(gradient) || op.attributes.automatic_loss_scale ||
        op.copy_of(hosted.index) ||
        graph_.info(gradient).desc.bytes() != graph_.info(hosted.parameter).desc.bytes() ||
        !std::ranges::all_of(users_[index_of(node.outputs[0])], [&](NodeIndex n) {
          return as<SumInOrder>(graph_.nodes()[n]) != nullptr;
        })) {
      return false;
    }
    find_gradients(gradient, hosted);
    return std::ranges::all_of(hosted.gradients, [&](const HostedGradient& one) {
      return runs_in_slices(hosted, one.tensor);
    });
  }

  NodeIndex maker(TensorId id) const { return index_of(graph_.producer(id).value()); }

  // Finds the parts of a gradient that a node does nothing but join for the update.
  void find_gradients(TensorId whole, Hosted& hosted) const {
    const Node& node = graph_.nodes()[maker(whole)];
    const auto is_only_joined = [&](TensorId part) {
      const TensorDesc& desc = graph_.info(part).desc;
      return users_[index_of(part)].size() == 1 && graph_.producer(part) && !is_output(part) &&
             desc == described(desc.shape, DataType::f32);
    };
    if (as<ConcatBatch>(node) == nullptr || !is_only_joined(whole) ||
        !std::ranges::all_of(node.inputs, is_only_joined)) {
      hosted.gradients.push_back({.tensor = whole, .made = maker(whole)});
      return;
    }
    hosted.joined = maker(whole);
    std::int64_t first = 0;
    for (const TensorId part : node.inputs) {
      hosted.gradients.push_back({.tensor = part, .made = maker(part), .first = first});
      first += stored_floats(graph_.info(part).desc);
    }
  }

  bool is_output(TensorId id) const {
    return std::ranges::any_of(graph_.outputs(),
                               [&](const Output& output) { return output.tensor == id; });
  }

  bool runs_in_slices(const Hosted& hosted, TensorId gradient) const;

  const Graph& graph_;
  const KernelTable& table_;
  std::vector<std::vector<NodeIndex>> users_;  // by TensorId, ascending
};

TensorDesc slice_desc(std::int64_t elements) {
  return {.shape = Shape{elements}, .type = DataType::f32};
}

// Asks for the kernels of one slice of a gradient.
bool HostedFinder::runs_in_slices(const Hosted& hosted, TensorId gradient) const {
  const Node& node = graph_.nodes()[hosted.update];
  const Update& op = *as<Update>(node);
  const UpdateSlice slice(attributes_of(op, hosted.index, 1), 0);
  const std::int64_t elements =
      std::min(elements_per_update, stored_floats(graph_.info(gradient).desc));
  Signature request;
  for (std::size_t i = 0; i < op.first_parameter(); ++i) {
    request.in.push_back(graph_.info(node.inputs[i]).desc);
  }
  request.in.push_back(slice_desc(elements));
  request.in.push_back(graph_.info(gradient).desc);
  request.in.insert(request.in.end(), op.slots(), slice_desc(elements));
  request.out = slice.infer(request.in);
  const Signature sums{.in = request.out, .out = HalfSumOfSlices().infer(request.out)};
  const auto as_requested = [](const std::optional<KernelSpec>& spec, const Signature& signature) {
    return spec && spec->in == signature.in && spec->out == signature.out;
  };
  return as_requested(table_.describe(slice, request), request) &&
         as_requested(table_.describe(HalfSumOfSlices(), sums), sums);
}

}  // namespace

std::vector<Hosted> find_hosted(const Graph& graph, const KernelTable& table,
                                const IsOnHost& is_on_host) {
  return HostedFinder(graph, table).find(is_on_host);
}

const SliceBatch* rows_of_parameter(const Graph& graph, const Node& node) {
  const auto* const slice = as<SliceBatch>(node);
  const auto is_plain = [&](TensorId id) {
    const TensorDesc& desc = graph.info(id).desc;
    return desc == described(desc.shape, DataType::f32);
  };
  return slice != nullptr && is_plain(node.inputs[0]) && is_plain(node.outputs[0]) ? slice
                                                                                   : nullptr;
}

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

}  // namespace cnn::layers
