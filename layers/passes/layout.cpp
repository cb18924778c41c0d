#include "layers/passes/layout.h"

#include <algorithm>
#include <map>
#include <string>
#include <utility>

#include "layers/elementwise.h"
#include "layers/optimizer.h"
#include "layers/passes/rewriter.h"
#include "layers/stale_gradient.h"
#include "runtime/divide_up.h"
#include "runtime/error.h"

namespace cnn::layers {
namespace {

// Images with fewer channels (network inputs) take the layout that their first reader wants:
// padding 3 channels to 16 would take five times the bytes.
constexpr std::int64_t few_channels = 8;

// The layouts that one run over the graph learns for the next, by old TensorId.
struct PreferredLayouts {
  std::vector<std::optional<TensorDesc>> reader;    // the description that the first reader takes
  std::vector<std::optional<TensorDesc>> produced;  // the description that its producer makes
};

// One run over the graph: settles layouts in node order, given the descriptions of parameters and
// state.
class Assignment {
 public:
  // persistent: the description of each parameter and state, by old TensorId; nothing: as declared.
  Assignment(const Graph& graph, const KernelTable& table, Layout image,
             const PreferredLayouts& preferred,
             std::span<const std::optional<TensorDesc>> persistent)
      : table_(table), image_(image), preferred_(preferred), rewriter_(graph, persistent) {
    const std::size_t tensors = graph.tensors().size();
    learned_.reader.resize(tensors);
    learned_.produced.resize(tensors);
  }

  Rewritten run() {
    for (const Node& node : rewriter_.old().nodes()) {
      place(node);
    }
    return finish();
  }

  const PreferredLayouts& learned() const { return learned_; }

 private:
  const TensorInfo& info_now(TensorId old) const {
    return rewriter_.graph().info(rewriter_.now(old));
  }

  TensorDesc wanted_output(TensorId old) const {
    TensorDesc desc = rewriter_.old().info(old).desc;
    if (desc.shape.rank() != 4) {
      return desc;
    }
    const std::optional<TensorDesc>& preference = preferred_.reader[index_of(old)];
    const bool follow =
        desc.shape[1] < few_channels && preference && preference->layout != Layout::packed;
    desc.layout = follow ? preference->layout : image_;
    return desc;
  }

  Signature ask(const Node& node) const {
    Signature request;
    for (const TensorId input : node.inputs) {
      request.in.push_back(info_now(input).desc);
    }
    for (const TensorId output : node.outputs) {
      request.out.push_back(wanted_output(output));
    }
    if (const auto* update = dynamic_cast<const Update*>(node.op.get())) {
      for (std::size_t i = 0; i < update->parameters;
           ++i) {  // asks for gradients in the layouts of their parameters
        request.in[update->first_gradient() + i] = request.in[update->first_parameter() + i];
      }
    }
    return request;
  }

  // If only the fallback kernel runs the op, and runs it in another type than the operands', asks
  // again with that type: a faster kernel may run the op in it.
  std::optional<KernelSpec> describe(const Op& op, Signature request) const {
    std::optional<KernelSpec> spec = table_.describe(op, request);
    const auto same_type = [](const TensorDesc& a, const TensorDesc& b) {
      return a.type == b.type;
    };
    if (!spec || request.in.empty() || same_type(spec->in[0], request.in[0])) {
      return spec;
    }
    const auto take_types = [](std::vector<TensorDesc>& to, const std::vector<TensorDesc>& from) {
      for (std::size_t i = 0; i < to.size(); ++i) {
        to[i].type = from[i].type;
      }
    };
    take_types(request.in, spec->in);
    take_types(request.out, spec->out);
    return table_.describe(op, request);
  }

  void place(const Node& node) {
    const std::optional<KernelSpec> spec = describe(*node.op, ask(node));
    check(spec.has_value(), "no kernel of this backend runs " + std::string(node.op->name()));
    Node placed{.op = node.op};
    for (std::size_t i = 0; i < node.inputs.size(); ++i) {
      placed.inputs.push_back(operand(node, i, spec->in[i]));
    }
    for (std::size_t i = 0; i < node.outputs.size(); ++i) {
      TensorInfo info = rewriter_.old().info(node.outputs[i]);
      info.desc = spec->out[i];
      learned_.produced[index_of(node.outputs[i])] = spec->out[i];
      placed.outputs.push_back(rewriter_.graph().add_tensor(std::move(info)));
    }
    const std::vector<TensorId> outputs = placed.outputs;
    rewriter_.graph().add_node(std::move(placed));
    for (std::size_t i = 0; i < outputs.size(); ++i) {
      rewriter_.moved(node.outputs[i], as_declared(node.outputs[i], outputs[i]));
    }
  }

  // Returns the input of a node in the description that its kernel takes, converted if necessary.
  TensorId operand(const Node& node, std::size_t i, const TensorDesc& wanted) {
    const TensorId old = node.inputs[i];
    if (!learned_.reader[index_of(old)]) {
      learned_.reader[index_of(old)] = wanted;
    }
    const TensorId id = rewriter_.now(old);
    check(!node.op->mutates(i) || info_now(old).desc == wanted,
          std::string(node.op->name()) + " cannot write " + info_now(old).name +
              " as it lies: " + to_string(info_now(old).desc) + ", wants " + to_string(wanted));
    return converted(id, wanted);
  }

  // Returns the output in the type that the op declares: a fallback kernel may have made another
  // one.
  TensorId as_declared(TensorId old, TensorId made) {
    const TensorDesc& declared = rewriter_.old().info(old).desc;
    if (rewriter_.graph().info(made).desc.type == declared.type) {
      return made;
    }
    return converted(made, wanted_output(old));
  }

  TensorId converted(TensorId id, const TensorDesc& wanted) {
    Graph& graph = rewriter_.graph();
    const TensorDesc& desc = graph.info(id).desc;
    if (desc == wanted) {
      return id;
    }
    const auto key = std::make_pair(id, to_string(wanted));
    if (const auto found = conversions_.find(key); found != conversions_.end()) {
      return found->second;
    }
    const auto op = std::make_shared<const Convert>(wanted.type);
    const Signature signature{.in = {desc}, .out = {wanted}};
    const std::optional<KernelSpec> spec = table_.describe(*op, signature);
    check(spec && spec->in == signature.in && spec->out == signature.out,
          "no kernel of this backend converts " + to_string(desc) + " to " + to_string(wanted));
    const TensorId result =
        graph.add_tensor({.name = graph.info(id).name + ":converted", .desc = wanted});
    graph.add_node({.op = op, .inputs = {id}, .outputs = {result}});
    conversions_.emplace(key, result);
    return result;
  }

  // Converts outputs to plain tensors, as the host reads them.
  Rewritten finish() {
    for (const Output& output : rewriter_.old().outputs()) {
      const TensorId id = rewriter_.now(output.tensor);
      rewriter_.moved(output.tensor, converted(id, plain(rewriter_.graph().info(id).desc)));
    }
    return rewriter_.finish();
  }

  const KernelTable& table_;
  Layout image_;
  const PreferredLayouts& preferred_;
  Rewriter rewriter_;
  PreferredLayouts learned_;
  std::map<std::pair<TensorId, std::string>, TensorId> conversions_;
};

using Descriptions = std::vector<std::optional<TensorDesc>>;

Descriptions descriptions_of(const Graph& graph, std::span<const TensorInfo> fixed) {
  std::map<std::string_view, const TensorDesc*> by_name;
  for (const TensorInfo& info : fixed) {
    by_name.emplace(info.name, &info.desc);
  }
  Descriptions result(graph.tensors().size());
  for (std::size_t i = 0; i < result.size(); ++i) {
    const TensorInfo& info = graph.tensors()[i];
    const bool persistent = info.role == Role::parameter || info.role == Role::state;
    if (const auto found = by_name.find(info.name); persistent && found != by_name.end()) {
      check(found->second->shape == info.desc.shape && found->second->type == info.desc.type,
            info.name + " is " + to_string(info.desc) + " here, but " + to_string(*found->second) +
                " in the variables it shares");
      result[i] = *found->second;
    }
  }
  return result;
}

// Gives a parameter and its slots the description of its gradient, and also the state in which a
// StaleGradient keeps the gradient for a step.
void follow_gradients(const Graph& graph, PreferredLayouts learned, Descriptions& result) {
  for (const Node& node : graph.nodes()) {
    if (dynamic_cast<const StaleGradient*>(node.op.get()) != nullptr) {
      const std::optional<TensorDesc>& made = learned.produced[index_of(node.inputs[0])];
      std::optional<TensorDesc>& kept = result[index_of(node.inputs[1])];
      if (!kept && made && made->type == DataType::f32) {
        kept = made;
      }
      learned.produced[index_of(node.outputs[0])] = kept;
      continue;
    }
    const auto* update = dynamic_cast<const Update*>(node.op.get());
    if (update == nullptr) {
      continue;
    }
    for (std::size_t i = 0; i < update->parameters; ++i) {
      const TensorId gradient = node.inputs[update->first_gradient() + i];
      const std::optional<TensorDesc>& made = learned.produced[index_of(gradient)];
      const TensorId parameter = node.inputs[update->first_parameter() + i];
      if (!made || made->type != graph.info(parameter).desc.type || result[index_of(parameter)]) {
        continue;
      }
      result[index_of(parameter)] = made;
      for (std::size_t slot = 0; slot < update->slots(); ++slot) {
        result[index_of(node.inputs[update->first_slot() + slot * update->parameters + i])] = made;
      }
    }
  }
}

// Gives parameters and state that no update touches the description that their first reader takes,
// if it has the same type.
void follow_readers(const Graph& graph, const PreferredLayouts& learned, Descriptions& result) {
  for (std::size_t i = 0; i < result.size(); ++i) {
    const TensorInfo& info = graph.tensors()[i];
    const bool persistent = info.role == Role::parameter || info.role == Role::state;
    const std::optional<TensorDesc>& preference = learned.reader[i];
    if (persistent && !result[i] && preference && preference->type == info.desc.type) {
      result[i] = preference;
    }
  }
}

}  // namespace

Layout image_layout(const Graph& graph, Layout preferred) {
  if (preferred != Layout::nchw16c) {
    return preferred;
  }
  double elements = 0;
  double with_padding = 0;
  for (const Node& node : graph.nodes()) {
    const TensorDesc& desc = graph.info(node.outputs.front()).desc;
    if (desc.shape.rank() == 4 && desc.shape[1] > 0) {
      const auto count = static_cast<double>(desc.shape.elements());
      const auto channels = static_cast<double>(desc.shape[1]);
      elements += count;
      const std::int64_t padded = round_up(desc.shape[1], 16);
      with_padding += count / channels * static_cast<double>(padded);
    }
  }
  constexpr double bearable = 1.15;
  return with_padding > bearable * elements ? Layout::nhwc : preferred;
}

Rewritten assign_layouts(const Graph& graph, const KernelTable& table, Layout image,
                         std::span<const TensorInfo> fixed) {
  Descriptions persistent = descriptions_of(graph, fixed);
  const PreferredLayouts nothing{Descriptions(persistent.size()), Descriptions(persistent.size())};
  Assignment first(graph, table, image, nothing, persistent);
  (void)first.run();  // only learns the requirements of kernels
  follow_gradients(graph, first.learned(), persistent);
  follow_readers(graph, first.learned(), persistent);
  return Assignment(graph, table, image, first.learned(), persistent).run();
}

}  // namespace cnn::layers
