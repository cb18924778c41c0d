#include "bench/plan/compile.h"

#include <algorithm>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "bench/ranks/exchange_flags.h"
#include "bench/ranks/rank_context.h"
#include "layers/all_reduce.h"
#include "layers/dropout.h"
#include "layers/elementwise.h"
#include "layers/loss.h"
#include "layers/optimizer.h"
#include "layers/passes/fuse_conv.h"
#include "layers/passes/layout.h"
#include "layers/passes/pipeline.h"
#include "layers/stale_gradient.h"
#include "models/model.h"
#include "runtime/error.h"

namespace cnn::bench {
namespace {

// tf_cnn_benchmarks' synthetic images: a truncated normal draw around the middle of a byte's range.
constexpr Initializer synthetic_pixels{Initializer::Kind::truncated_normal, 127, 60};

struct Forward {
  std::shared_ptr<Graph> graph;
  std::optional<Value> loss;
};

Value images_of(Graph& graph, const CompileRequest& request) {
  const std::int64_t size = request.image_size;
  const Shape shape{request.batch, request.model.channels, size, size};
  if (request.input.synthetic) {
    std::string name = request.phase == Phase::training ? "images" : "eval_images";
    if (request.rank > 0) {  // a separate draw per rank
      name += ":" + std::to_string(request.rank);
    }
    return graph.state(name, {shape, request.compute}, synthetic_pixels, false);
  }
  const Value raw = graph.input("images", {shape, request.input.image_type, Layout::nhwc});
  return emit(layers::Normalise(request.input.scale, request.input.shift, request.compute), {raw});
}

Value labels_of(Graph& graph, const CompileRequest& request) {
  if (request.input.synthetic && request.config.data.synthetic_labels == SyntheticLabels::random) {
    // The bound excludes the last class, as in tf_cnn_benchmarks.
    const auto bound = static_cast<std::int32_t>(request.model.classes - 1);
    return emit(layers::SyntheticLabels(request.batch, bound, graph.traits().seed),
                {layers::global_step(graph)});
  }
  return graph.input("labels", {Shape{request.batch}, DataType::i32});
}

// Every rank draws different labels and dropout masks.
std::uint64_t seed_of(const CompileRequest& request) {
  constexpr std::uint64_t apart = 0x9E3779B97F4A7C15U;
  return static_cast<std::uint64_t>(request.config.seed) +
         static_cast<std::uint64_t>(request.rank) * apart;
}

struct Heads {
  Value logits;
  std::optional<Value> auxiliary;
};

Heads heads_of(const CompileRequest& request, Value images) {
  const auto exact = [](Value logits) { return layers::convert(logits, DataType::f32); };
  if (!request.config.model.auxiliary_head || request.phase == Phase::forward_only) {
    return {exact(models::logits(request.model, images)), std::nullopt};
  }
  // An evaluation builds both heads, since its checkpoint holds both, and measures the main one.
  const models::Logits made = models::logits_of_two_heads(request.model, images);
  if (request.phase != Phase::training) {
    return {exact(made.main), std::nullopt};
  }
  return {exact(made.main), exact(made.auxiliary)};
}

Value loss_of(const Heads& heads, Value labels) {
  const Value loss = layers::softmax_cross_entropy(heads.logits, labels);
  if (!heads.auxiliary) {
    return loss;
  }
  const Value auxiliary = layers::softmax_cross_entropy(*heads.auxiliary, labels);
  return layers::add(loss, layers::scale(auxiliary, models::auxiliary_weight));
}

Forward build_forward(const CompileRequest& request) {
  Traits traits{.training = request.phase == Phase::training,
                .dropout = request.config.model.dropout,
                .compute = request.compute,
                .seed = seed_of(request)};
  Forward forward{.graph = std::make_shared<Graph>(std::move(traits))};
  Graph& graph = *forward.graph;
  const Value images = images_of(graph, request);
  const Value labels = labels_of(graph, request);
  const Heads heads = heads_of(request, images);
  const Value logits = heads.logits;
  if (request.phase != Phase::forward_only) {
    forward.loss = loss_of(heads, labels);
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
  options.update.rule = config.optimizer.rule;
  options.update.momentum = config.optimizer.momentum;
  options.update.rmsprop_decay = config.optimizer.rmsprop_decay;
  options.update.rmsprop_momentum = config.optimizer.rmsprop_momentum;
  options.update.rmsprop_epsilon = config.optimizer.rmsprop_epsilon;
  options.update.adam_beta1 = config.optimizer.adam_beta1;
  options.update.adam_beta2 = config.optimizer.adam_beta2;
  options.update.adam_epsilon = config.optimizer.adam_epsilon;
  options.update.weight_decay = config.optimizer.weight_decay;
  options.update.clip = config.optimizer.gradient_clip;
  if (request.compute == DataType::f16) {
    // As in upstream, 0 counts as not set.
    const double scale = config.precision.loss_scale.value_or(0);
    options.update.loss_scale = scale == 0 ? request.model.fp16_loss_scale : scale;
    options.update.automatic_loss_scale = config.precision.automatic_loss_scale;
    options.loss_scale_every_n = config.precision.loss_scale_every_n;
  }
  return options;
}

// Returns n: each rank gets the sum of all gradients times n / ranks. Upstream's
// distributed_replicated averages within each worker and sums over workers.
int summed_ranks(const CompileRequest& request) {
  const VariableUpdate mode = request.config.variable_update;
  const int averaged = mode == VariableUpdate::distributed_replicated ? request.config.num_gpus : 1;
  return sums_gradients(mode) ? request.ranks / averaged : 1;
}

// Sets the exchange of gradients, and the part of the weight decay that each rank adds to its
// gradient.
void exchange(const CompileRequest& request, layers::TrainingOptions& options) {
  if (request.ranks == 1) {
    return;
  }
  const VariableUpdate mode = request.config.variable_update;
  double& decay = options.optimizer.update.weight_decay;
  const int summed = summed_ranks(request);
  // Each rank's decay, chosen so that the sum or mean over ranks equals the update's decay.
  const double own_decay = decay;
  decay *= summed;
  const bool late = request.config.comm.consistency == VariableConsistency::relaxed &&
                    mode != VariableUpdate::parameter_server;
  options.on_gradients = [late, own_decay,
                          factor = static_cast<float>(summed) / static_cast<float>(request.ranks),
                          sizes = bucket_sizes(request.config.comm)](
                             std::span<const Value> parameters, std::span<Value> gradients) {
    if (late) {
      layers::append_stale_gradients(parameters, gradients, own_decay);
    }
    layers::append_exchange(gradients, sizes, factor);
  };
}

// Independent ranks train copies of one model, so their images, labels, dropout and weight decay
// match a run on one device.
CompileRequest as_trained(CompileRequest request) {
  if (request.phase == Phase::training &&
      request.config.variable_update == VariableUpdate::independent) {
    request.rank = 0;
    request.ranks = 1;
  }
  return request;
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

// Returns the requested fusion, or the backend's best. Throws Error if the backend cannot do the
// request.
layers::Fusion fusion_of(const CompileRequest& request, const RankContext& context, Layout layout) {
  const Config& config = request.config;
  check(config.graph.fusion != FusionChoice::conv ||
            layers::fuses_convolutions(context.kernels, request.compute, layout),
        "--fusion=conv needs the CUDA backend (--device=gpu) and --precision=fp16; use auto or bn");
  if (!config.graph.optimize || config.graph.fusion == FusionChoice::none) {
    return layers::Fusion::none;
  }
  return config.graph.fusion == FusionChoice::bn ? layers::Fusion::bn : layers::Fusion::conv;
}

}  // namespace

bool sums_gradients(VariableUpdate mode) {
  return mode != VariableUpdate::parameter_server && mode != VariableUpdate::ddl;
}

std::size_t default_bucket_bytes() { return layers::OptimizerOptions().bucket_bytes; }

std::size_t Compiled::device_bytes() const {
  return std::max(plan.memory.device_bytes, prologue ? prologue->memory.device_bytes : 0);
}

std::size_t Compiled::lower_bound_bytes() const {
  return std::max(plan.memory.lower_bound_bytes, prologue ? prologue->memory.lower_bound_bytes : 0);
}

Compiled compile(const CompileRequest& caller_request, const RankContext& context,
                 std::span<const TensorInfo> fixed) {
  const CompileRequest request = as_trained(caller_request);
  const Forward forward = build_forward(request);
  Compiled compiled{.batch = request.batch, .classes = request.model.classes};
  compiled.facts = facts_of(*forward.graph, request.batch);
  compiled.layout =
      layers::image_layout(*forward.graph, context.backend.preferred_layout(request.compute));
  layers::PipelineOptions options{.fusion = fusion_of(request, context, compiled.layout),
                                  .layout = compiled.layout,
                                  .max_fused_grad_add_bytes = request.max_fused_grad_add_bytes,
                                  .slices = request.slices,
                                  .row_slices = request.row_slices,
                                  .fixed = fixed,
                                  .is_on_host = request.is_on_host,
                                  .dense_slices = request.dense_slices};
  if (const KernelTuning& tuning = context.backend.tuning; tuning.node_seconds) {
    options.seconds = [&](const std::string& key, const Op& op, const Signature& signature) {
      return tuning.node_seconds(context.kernels, key, op, signature);
    };
  }
  if (request.phase == Phase::training) {
    options.loss = forward.loss.value().id;
    options.training.optimizer = optimizer_options(request);
    options.training.optimizer.bucket_bytes = request.bucket_bytes.value_or(default_bucket_bytes());
    exchange(request, options.training);
  }
  layers::PipelineResult made = layers::run_pipeline(*forward.graph, context.kernels, options);
  compiled.fusion = made.fusion;
  compiled.norms = made.norms;
  compiled.slicing = made.slicing;
  compiled.plan = make_plan(std::move(made.graphs.step), context.kernels);
  if (made.graphs.prologue) {
    compiled.prologue = make_plan(std::move(made.graphs.prologue), context.kernels);
  }
  return compiled;
}

}  // namespace cnn::bench
