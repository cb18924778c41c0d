#include "bench/run/compile.h"

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "layers/batch_norm.h"
#include "layers/conv.h"
#include "layers/dense.h"
#include "layers/dropout.h"
#include "layers/elementwise.h"
#include "layers/fused_conv.h"
#include "layers/loss.h"
#include "layers/optimizer.h"
#include "layers/passes/autodiff.h"
#include "layers/passes/concat_in_place.h"
#include "layers/passes/copies.h"
#include "layers/passes/freeze.h"
#include "layers/passes/fuse.h"
#include "layers/passes/fuse_conv.h"
#include "layers/passes/fuse_gradients.h"
#include "layers/passes/layout.h"
#include "models/model.h"
#include "runtime/error.h"

namespace cnn::bench {
namespace {

// tf_cnn_benchmarks' synthetic images: one truncated normal draw around the middle of a byte.
constexpr Initializer synthetic_pixels{Initializer::Kind::truncated_normal, 127, 60};

struct Forward {
  std::shared_ptr<Graph> graph;
  std::optional<Value> loss;
};

Value images_of(Graph& graph, const CompileRequest& request) {
  const std::int64_t size = request.image_size;
  const Shape shape{request.batch, request.model.channels, size, size};
  if (request.input.synthetic) {
    const char* name = request.phase == Phase::training ? "images" : "eval_images";
    return graph.state(name, {shape, request.compute}, synthetic_pixels, false);
  }
  const Value raw = graph.input("images", {shape, request.input.image_type, Layout::nhwc});
  return emit(layers::Normalise(request.input.scale, request.input.shift, request.compute), {raw});
}

Value labels_of(Graph& graph, const CompileRequest& request) {
  if (request.input.synthetic && request.config.data.synthetic_labels == SyntheticLabels::random) {
    // The last class is never drawn, as in tf_cnn_benchmarks.
    const auto bound = static_cast<std::int32_t>(request.model.classes - 1);
    return emit(layers::SyntheticLabels(request.batch, bound, graph.traits().seed),
                {layers::global_step(graph)});
  }
  return graph.input("labels", {Shape{request.batch}, DataType::i32});
}

Forward build_forward(const CompileRequest& request) {
  Traits traits{.training = request.phase == Phase::training,
                .dropout = request.config.model.dropout,
                .compute = request.compute,
                .seed = static_cast<std::uint64_t>(request.config.seed)};
  Forward forward{.graph = std::make_shared<Graph>(std::move(traits))};
  Graph& graph = *forward.graph;
  const Value images = images_of(graph, request);
  const Value labels = labels_of(graph, request);
  const Value logits = layers::convert(models::logits(request.model, images), DataType::f32);
  if (request.phase != Phase::forward_only) {
    forward.loss = layers::softmax_cross_entropy(logits, labels);
    graph.output("base_loss", *forward.loss);
  }
  if (request.phase != Phase::training || request.config.report.training_accuracy) {
    const std::vector<Value> operands{logits, labels};
    const std::vector<Value> hits = emit_all(layers::Accuracy(), std::span<const Value>(operands));
    graph.output("top_1", hits[0]);
    graph.output("top_5", hits[1]);
  }
  return forward;
}

layers::OptimizerOptions optimizer_options(const CompileRequest& request) {
  const Config& config = request.config;
  layers::OptimizerOptions options;
  options.update.rule = layers::find_rule(config.optimizer.name).rule;
  options.update.momentum = config.optimizer.momentum;
  options.update.rmsprop_decay = config.optimizer.rmsprop_decay;
  options.update.rmsprop_momentum = config.optimizer.rmsprop_momentum;
  options.update.rmsprop_epsilon = config.optimizer.rmsprop_epsilon;
  options.update.adam_beta1 = config.optimizer.adam_beta1;
  options.update.adam_beta2 = config.optimizer.adam_beta2;
  options.update.adam_epsilon = config.optimizer.adam_epsilon;
  options.update.weight_decay = config.optimizer.weight_decay;
  options.update.clip = config.optimizer.gradient_clip;
  if (config.precision.use_fp16 || request.compute == DataType::f16) {
    options.update.loss_scale = config.precision.loss_scale.value_or(request.model.fp16_loss_scale);
    options.update.automatic_loss_scale = config.precision.automatic_loss_scale;
    options.loss_scale_every_n = config.precision.loss_scale_every_n;
  }
  return options;
}

std::vector<Value> parameters_of(Graph& graph) {
  std::vector<Value> parameters;
  for (std::uint32_t i = 0; i < graph.tensors().size(); ++i) {
    if (graph.tensors()[i].role == Role::parameter) {
      parameters.push_back({&graph, TensorId{i}});
    }
  }
  return parameters;
}

void append_training(Graph& graph, Value loss, const CompileRequest& request) {
  const layers::OptimizerOptions options = optimizer_options(request);
  const std::vector<Value> parameters = parameters_of(graph);
  const Value seed = layers::loss_seed(graph, options);
  std::vector<Value> gradients;
  for (const std::optional<Value>& gradient : layers::gradients(loss, parameters, seed)) {
    check(gradient.has_value(), "the loss does not depend on every parameter of the model");
    gradients.push_back(*gradient);
  }
  layers::append_moving_averages(graph);
  graph.output("l2", layers::append_update(graph, parameters, gradients, options));
}

NetworkFacts facts_of(const Graph& graph, std::int64_t batch) {
  NetworkFacts facts;
  for (const TensorInfo& info : graph.tensors()) {
    if (info.role == Role::parameter) {
      facts.trainable_parameters += info.desc.shape.elements();
      ++facts.trainable_tensors;
    }
  }
  for (const Node& node : graph.nodes()) {
    std::vector<TensorDesc> in;
    for (const TensorId input : node.inputs) {
      in.push_back(graph.info(input).desc);
    }
    facts.forward_macs += node.op->flops(in) / 2 / static_cast<double>(batch);
  }
  return facts;
}

// Blocks of 16 channels, unless they would be mostly padding (DenseNet's growth of 12).
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
      const std::int64_t padded = (desc.shape[1] + 15) / 16 * 16;
      with_padding += count / channels * static_cast<double>(padded);
    }
  }
  constexpr double bearable = 1.15;
  return with_padding > bearable * elements ? Layout::nhwc : preferred;
}

// The engines that convolutions need for it are cuDNN's, and know only f16.
bool fuses_convolutions(const CompileRequest& request, const Backend& backend) {
  return backend.name == "cuda" && request.compute == DataType::f16;
}

// As far as asked, or as the backend can. Throws Error if it cannot do what is asked.
Fusion fusion_of(const CompileRequest& request, const Backend& backend) {
  const Config& config = request.config;
  const bool can_fuse = fuses_convolutions(request, backend);
  check(config.graph.fusion != FusionChoice::conv || can_fuse,
        "--fusion=conv needs the CUDA backend (--device=gpu) and --precision=fp16; use auto or bn");
  if (!config.graph.optimize || config.graph.fusion == FusionChoice::none) {
    return Fusion::none;
  }
  return config.graph.fusion != FusionChoice::bn && can_fuse ? Fusion::conv : Fusion::bn;
}

// Where ops without a kernel run as plain loops, every op seems to have one.
bool masks_gates(const Backend& backend) { return backend.name == "cuda"; }

// The kernels of others do not look at pitches.
bool concatenates_in_place(Fusion fusion, const Backend& backend) {
  return fusion != Fusion::none && backend.name == "cuda";
}

bool has_fused_convolutions(const Graph& graph) {
  return std::ranges::any_of(graph.nodes(), [](const Node& node) {
    return dynamic_cast<const layers::FusedConv*>(node.op.get()) != nullptr;
  });
}

}  // namespace

std::string_view name_of(Fusion fusion) {
  constexpr std::string_view names[] = {"none", "bn", "conv"};
  return names[static_cast<std::size_t>(fusion)];
}

std::size_t Compiled::device_bytes() const {
  return std::max(plan.memory.device_bytes, prologue ? prologue->memory.device_bytes : 0);
}

std::size_t Compiled::lower_bound_bytes() const {
  return std::max(plan.memory.lower_bound_bytes, prologue ? prologue->memory.lower_bound_bytes : 0);
}

Compiled compile(const CompileRequest& request, const Backend& backend,
                 std::span<const TensorInfo> fixed) {
  Forward forward = build_forward(request);
  Compiled compiled{.batch = request.batch, .classes = request.model.classes};
  compiled.facts = facts_of(*forward.graph, request.batch);
  compiled.layout = image_layout(*forward.graph, backend.preferred_layout(request.compute));

  Fusion fusion = fusion_of(request, backend);
  std::shared_ptr<Graph> graph = forward.graph;
  std::optional<TensorId> loss;
  if (forward.loss) {
    loss = forward.loss->id;
  }
  if (fusion != Fusion::none) {
    const Rewritten fused = layers::fuse_activations(*graph);
    graph = fused.graph;
    loss = loss ? fused.was[index_of(*loss)] : loss;
  }
  if (request.phase == Phase::training) {
    append_training(*graph, {graph.get(), loss.value()}, request);
    if (fusion == Fusion::conv) {
      graph = layers::fuse_convolutions(*graph, backend.kernels, compiled.layout).graph;
      fusion = has_fused_convolutions(*graph) ? Fusion::conv : Fusion::bn;
    }
    if (fusion != Fusion::none) {
      graph = layers::join_gradients(*graph).graph;
    }
    if (fusion != Fusion::none && masks_gates(backend)) {
      graph = layers::mask_gates(*graph, backend.kernels, compiled.layout).graph;
    }
  } else if (fusion != Fusion::none) {
    graph = layers::fold_batch_norms(*graph).graph;
    fusion = Fusion::bn;
  }
  compiled.fusion = fusion;
  graph = layers::assign_layouts(*graph, backend.kernels, compiled.layout, fixed).graph;
  layers::Divided divided{.step = graph, .prologue = nullptr};
  if (request.phase == Phase::training) {
    divided = layers::keep_copies(*graph, backend.kernels);
  } else if (fixed.empty()) {
    divided = layers::freeze_constants(*graph);
  }
  if (concatenates_in_place(fusion, backend)) {
    divided.step = layers::concat_in_place(*divided.step, backend.kernels).graph;
  }
  compiled.plan = make_plan(std::move(divided.step), backend.kernels);
  if (divided.prologue) {
    compiled.prologue = make_plan(std::move(divided.prologue), backend.kernels);
  }
  return compiled;
}

}  // namespace cnn::bench
