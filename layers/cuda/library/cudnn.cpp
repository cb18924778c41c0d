#include "layers/cuda/library/cudnn.h"

#include <algorithm>
#include <array>
#include <iterator>
#include <utility>

#include "runtime/error.h"

namespace cnn::layers::cuda {
namespace {

cudnnDataType_t cudnn_type(DataType type) {
  switch (type) {
    case DataType::f16:
      return CUDNN_DATA_HALF;
    case DataType::bf16:
      return CUDNN_DATA_BFLOAT16;
    case DataType::i32:
      return CUDNN_DATA_INT32;
    case DataType::u8:
      return CUDNN_DATA_UINT8;
    case DataType::f32:
      break;
  }
  return CUDNN_DATA_FLOAT;
}

// The attributes by which the operation of a direction takes its operands.
struct ConvolutionNames {
  cudnnBackendDescriptorType_t type;
  cudnnBackendAttributeName_t window, x, w, y, alpha, beta;
};

ConvolutionNames names_of(Direction direction) {
  switch (direction) {
    case Direction::backward_data:
      return {CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_CONV_DESC,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DX,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_W,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DY,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_ALPHA,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_BETA};
    case Direction::backward_weights:
      return {CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_FILTER_DESCRIPTOR,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_CONV_DESC,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_X,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DW,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DY,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_ALPHA,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_BETA};
    case Direction::forward:
      break;
  }
  return {CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR,
          CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_CONV_DESC,
          CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_X,
          CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_W,
          CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_Y,
          CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_ALPHA,
          CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_BETA};
}

using Pair = std::array<std::int64_t, 2>;

void set_pair(Descriptor& to, cudnnBackendAttributeName_t name, const Pair& pair) {
  to.set(name, std::span<const std::int64_t>(pair));
}

Descriptor window_descriptor(const Window& w) {
  Descriptor result(CUDNN_BACKEND_CONVOLUTION_DESCRIPTOR);
  result.set(CUDNN_ATTR_CONVOLUTION_COMP_TYPE, CUDNN_DATA_FLOAT);
  result.set(CUDNN_ATTR_CONVOLUTION_CONV_MODE, CUDNN_CROSS_CORRELATION);
  result.set(CUDNN_ATTR_CONVOLUTION_SPATIAL_DIMS, std::int64_t{2});
  set_pair(result, CUDNN_ATTR_CONVOLUTION_DILATIONS, {1, 1});
  set_pair(result, CUDNN_ATTR_CONVOLUTION_FILTER_STRIDES, {w.stride_h, w.stride_w});
  set_pair(result, CUDNN_ATTR_CONVOLUTION_PRE_PADDINGS, {w.pad_top, w.pad_left});
  set_pair(result, CUDNN_ATTR_CONVOLUTION_POST_PADDINGS, {w.pad_bottom, w.pad_right});
  result.finalize("a convolution");
  return result;
}

// The engine with its settings, as cuDNN takes them; nothing if it does not.
std::optional<std::vector<Descriptor>> configure(const OperationGraph& graph, const Choice& choice,
                                                 const Descriptor* properties) {
  std::vector<Descriptor> parts;
  Descriptor engine(CUDNN_BACKEND_ENGINE_DESCRIPTOR);
  engine.set(CUDNN_ATTR_ENGINE_OPERATION_GRAPH, graph.native());
  engine.set(CUDNN_ATTR_ENGINE_GLOBAL_INDEX, choice.engine);
  if (properties != nullptr) {
    engine.set(CUDNN_ATTR_ENGINE_DEVICEPROP, *properties);
  }
  if (!engine.try_finalize()) {
    return std::nullopt;
  }
  std::vector<Descriptor> knobs;
  for (const Choice::Knob& knob : choice.knobs) {
    Descriptor& setting = knobs.emplace_back(CUDNN_BACKEND_KNOB_CHOICE_DESCRIPTOR);
    setting.set(CUDNN_ATTR_KNOB_CHOICE_KNOB_TYPE, static_cast<cudnnBackendKnobType_t>(knob.type));
    setting.set(CUDNN_ATTR_KNOB_CHOICE_KNOB_VALUE, knob.value);
    if (!setting.try_finalize()) {
      return std::nullopt;
    }
  }
  Descriptor config(CUDNN_BACKEND_ENGINECFG_DESCRIPTOR);
  config.set(CUDNN_ATTR_ENGINECFG_ENGINE, engine);
  if (!knobs.empty()) {
    config.set(CUDNN_ATTR_ENGINECFG_KNOB_CHOICES, std::span<const Descriptor>(knobs));
  }
  if (!config.try_finalize()) {
    return std::nullopt;
  }
  parts.push_back(std::move(engine));
  std::ranges::move(knobs, std::back_inserter(parts));
  parts.push_back(std::move(config));
  return parts;
}

Choice choice_of(const Descriptor& config, const Descriptor& engine) {
  Choice choice;
  choice.engine = engine.get<std::int64_t>(CUDNN_ATTR_ENGINE_GLOBAL_INDEX);
  for (const Descriptor& knob :
       config.descriptors(CUDNN_ATTR_ENGINECFG_KNOB_CHOICES, CUDNN_BACKEND_KNOB_CHOICE_DESCRIPTOR,
                          CUDNN_KNOB_TYPE_COUNTS)) {
    choice.knobs.push_back({knob.get<cudnnBackendKnobType_t>(CUDNN_ATTR_KNOB_CHOICE_KNOB_TYPE),
                            knob.get<std::int64_t>(CUDNN_ATTR_KNOB_CHOICE_KNOB_VALUE)});
  }
  return choice;
}

bool is_allowed(const Descriptor& engine, const Limits& limits) {
  const auto numerical = engine.get_all<cudnnBackendNumericalNote_t>(
      CUDNN_ATTR_ENGINE_NUMERICAL_NOTE, CUDNN_NUMERICAL_NOTE_TYPE_COUNT);
  const auto behaviour = engine.get_all<cudnnBackendBehaviorNote_t>(CUDNN_ATTR_ENGINE_BEHAVIOR_NOTE,
                                                                    CUDNN_BEHAVIOR_NOTE_TYPE_COUNT);
  const auto has = [&](cudnnBackendNumericalNote_t note) {
    return std::ranges::find(numerical, note) != numerical.end();
  };
  // Sums are in f32 by the definition of the op.
  if (has(CUDNN_NUMERICAL_NOTE_REDUCED_PRECISION_REDUCTION) ||
      (limits.deterministic && has(CUDNN_NUMERICAL_NOTE_NONDETERMINISTIC))) {
    return false;
  }
  if (limits.strict_f32 &&
      (has(CUDNN_NUMERICAL_NOTE_TENSOR_CORE) || has(CUDNN_NUMERICAL_NOTE_DOWN_CONVERT_INPUTS))) {
    return false;
  }
  return limits.compiled ||
         std::ranges::find(behaviour, CUDNN_BEHAVIOR_NOTE_RUNTIME_COMPILATION) == behaviour.end();
}

}  // namespace

std::string cudnn_version_text(std::size_t version) {
  return std::to_string(version / 10000) + "." + std::to_string(version % 10000 / 100) + "." +
         std::to_string(version % 100);
}

std::string device_json(int ordinal) {
  Descriptor properties(CUDNN_BACKEND_DEVICEPROP_DESCRIPTOR);
  properties.set(CUDNN_ATTR_DEVICEPROP_DEVICE_ID, std::int32_t{ordinal});
  properties.finalize("the description of device " + std::to_string(ordinal));
  return properties.text(CUDNN_ATTR_DEVICEPROP_JSON_REPRESENTATION);
}

Target Target::described(const std::string& device_json) {
  Target target;
  target.properties_.emplace(CUDNN_BACKEND_DEVICEPROP_DESCRIPTOR);
  // The text ends with a zero, which counts.
  target.properties_->set(CUDNN_ATTR_DEVICEPROP_JSON_REPRESENTATION,
                          std::span<const char>(device_json.c_str(), device_json.size() + 1));
  target.properties_->finalize("the stored description of a device");
  return target;
}

Target Target::live(cudnnHandle_t handle) {
  Target target;
  target.handle_ = handle;
  return target;
}

void OperationGraph::tensor(const Tensor& tensor) {
  const Shape& s = tensor.shape;
  const std::int64_t pitch = tensor.pitch > 0 ? tensor.pitch : s[1];
  const std::array<std::int64_t, 4> strides{pitch * s[2] * s[3], 1, pitch * s[3], pitch};
  Descriptor descriptor(CUDNN_BACKEND_TENSOR_DESCRIPTOR);
  descriptor.set(CUDNN_ATTR_TENSOR_DATA_TYPE, cudnn_type(tensor.type));
  descriptor.set(CUDNN_ATTR_TENSOR_DIMENSIONS, std::span<const std::int64_t>(s.begin(), s.end()));
  descriptor.set(CUDNN_ATTR_TENSOR_STRIDES, std::span<const std::int64_t>(strides));
  descriptor.set(CUDNN_ATTR_TENSOR_UNIQUE_ID, tensor.id);
  // Blocks of the memory plan are aligned to 64 bytes, parts of images to 16; no engine gains by
  // more than that.
  descriptor.set(CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT, std::int64_t{16});
  descriptor.set(CUDNN_ATTR_TENSOR_IS_VIRTUAL, tensor.inner);
  descriptor.finalize("a tensor " + to_string(s));
  tensors_.push_back(tensor);
  tensor_descriptors_.push_back(std::move(descriptor));
}

const Descriptor& OperationGraph::find(std::int64_t id) const {
  const auto found = std::ranges::find(tensors_, id, &Tensor::id);
  check(found != tensors_.end(), "a cuDNN graph has no tensor " + std::to_string(id));
  return tensor_descriptors_[static_cast<std::size_t>(found - tensors_.begin())];
}

void OperationGraph::convolution(const Convolution& c) {
  const Descriptor& window = parts_.emplace_back(window_descriptor(c.window));
  const ConvolutionNames names = names_of(c.direction);
  Descriptor operation(names.type);
  operation.set(names.x, find(c.x));
  operation.set(names.w, find(c.w));
  operation.set(names.y, find(c.y));
  operation.set(names.window, window);
  operation.set(names.alpha, 1.0F);
  operation.set(names.beta, 0.0F);
  operation.finalize("a convolution's operands");
  operations_.push_back(std::move(operation));
}

void OperationGraph::pointwise(cudnnPointwiseMode_t mode, std::span<const Operand> operands) {
  Descriptor& kind = parts_.emplace_back(CUDNN_BACKEND_POINTWISE_DESCRIPTOR);
  kind.set(CUDNN_ATTR_POINTWISE_MODE, mode);
  kind.set(CUDNN_ATTR_POINTWISE_MATH_PREC, CUDNN_DATA_FLOAT);
  kind.finalize("an element-wise operation");
  Descriptor operation(CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR);
  operation.set(CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR, kind);
  for (const Operand& operand : operands) {
    operation.set(operand.name, find(operand.tensor));
  }
  operation.finalize("an element-wise operation's operands");
  operations_.push_back(std::move(operation));
}

namespace {

constexpr auto name_x = CUDNN_ATTR_OPERATION_POINTWISE_XDESC;
constexpr auto name_b = CUDNN_ATTR_OPERATION_POINTWISE_BDESC;
constexpr auto name_y = CUDNN_ATTR_OPERATION_POINTWISE_YDESC;

}  // namespace

void OperationGraph::add(std::int64_t a, std::int64_t b, std::int64_t out) {
  pointwise(CUDNN_POINTWISE_ADD, std::array<Operand, 3>{{{name_x, a}, {name_b, b}, {name_y, out}}});
}

void OperationGraph::subtract(std::int64_t a, std::int64_t b, std::int64_t out) {
  pointwise(CUDNN_POINTWISE_SUB, std::array<Operand, 3>{{{name_x, a}, {name_b, b}, {name_y, out}}});
}

void OperationGraph::multiply(std::int64_t a, std::int64_t b, std::int64_t out) {
  pointwise(CUDNN_POINTWISE_MUL, std::array<Operand, 3>{{{name_x, a}, {name_b, b}, {name_y, out}}});
}

void OperationGraph::relu(std::int64_t in, std::int64_t out) {
  pointwise(CUDNN_POINTWISE_RELU_FWD, std::array<Operand, 2>{{{name_x, in}, {name_y, out}}});
}

void OperationGraph::relu_backward(std::int64_t gradient, std::int64_t in, std::int64_t out) {
  pointwise(CUDNN_POINTWISE_RELU_BWD,
            std::array<Operand, 3>{{{CUDNN_ATTR_OPERATION_POINTWISE_DYDESC, gradient},
                                    {name_x, in},
                                    {CUDNN_ATTR_OPERATION_POINTWISE_DXDESC, out}}});
}

void OperationGraph::statistics(std::int64_t x, std::int64_t sum, std::int64_t squares) {
  Descriptor operation(CUDNN_BACKEND_OPERATION_GEN_STATS_DESCRIPTOR);
  operation.set(CUDNN_ATTR_OPERATION_GENSTATS_MODE, CUDNN_GENSTATS_SUM_SQSUM);
  operation.set(CUDNN_ATTR_OPERATION_GENSTATS_MATH_PREC, CUDNN_DATA_FLOAT);
  operation.set(CUDNN_ATTR_OPERATION_GENSTATS_XDESC, find(x));
  operation.set(CUDNN_ATTR_OPERATION_GENSTATS_SUMDESC, find(sum));
  operation.set(CUDNN_ATTR_OPERATION_GENSTATS_SQSUMDESC, find(squares));
  operation.finalize("sums over channels");
  operations_.push_back(std::move(operation));
}

void OperationGraph::norm_backward(const NormBackward& n) {
  Descriptor operation(CUDNN_BACKEND_OPERATION_BN_BWD_WEIGHTS_DESCRIPTOR);
  operation.set(CUDNN_ATTR_OPERATION_BN_BWD_WEIGHTS_MATH_PREC, CUDNN_DATA_FLOAT);
  const std::array<Operand, 10> operands{
      {{CUDNN_ATTR_OPERATION_BN_BWD_WEIGHTS_MEAN_DESC, n.mean},
       {CUDNN_ATTR_OPERATION_BN_BWD_WEIGHTS_INVSTD_DESC, n.inverse_deviation},
       {CUDNN_ATTR_OPERATION_BN_BWD_WEIGHTS_BN_SCALE_DESC, n.gamma},
       {CUDNN_ATTR_OPERATION_BN_BWD_WEIGHTS_X_DESC, n.x},
       {CUDNN_ATTR_OPERATION_BN_BWD_WEIGHTS_DY_DESC, n.dy},
       {CUDNN_ATTR_OPERATION_BN_BWD_WEIGHTS_DBN_SCALE_DESC, n.dgamma},
       {CUDNN_ATTR_OPERATION_BN_BWD_WEIGHTS_DBN_BIAS_DESC, n.dbeta},
       {CUDNN_ATTR_OPERATION_BN_BWD_WEIGHTS_EQ_DY_SCALE_DESC, n.a},
       {CUDNN_ATTR_OPERATION_BN_BWD_WEIGHTS_EQ_X_SCALE_DESC, n.b},
       {CUDNN_ATTR_OPERATION_BN_BWD_WEIGHTS_EQ_BIAS, n.c}}};
  for (const Operand& operand : operands) {
    operation.set(operand.name, find(operand.tensor));
  }
  operation.finalize("sums of a batch norm's gradient");
  operations_.push_back(std::move(operation));
}

void OperationGraph::finish() {
  Descriptor graph(CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR);
  graph.set(CUDNN_ATTR_OPERATIONGRAPH_OPS, std::span<const Descriptor>(operations_));
  if (target_.is_live()) {
    graph.set(CUDNN_ATTR_OPERATIONGRAPH_HANDLE, target_.handle_);
  }
  graph.finalize("a graph of operations");
  graph_ = std::move(graph);
}

std::string to_string(const Choice& choice) {
  std::string text = "engine " + std::to_string(choice.engine) + " knobs ";
  std::string separator;
  for (const Choice::Knob& knob : choice.knobs) {
    text += separator + std::to_string(knob.type) + "=" + std::to_string(knob.value);
    separator = ",";
  }
  return choice.knobs.empty() ? text + "-" : text;
}

// Goes through what the heuristics propose.
class Candidates {
 public:
  Candidates(const OperationGraph& graph, const Target& target, const Limits& limits,
             std::size_t at_most)
      : graph_(graph), target_(target), limits_(limits), at_most_(at_most) {}

  std::vector<Choice> collect() {
    // The second mode adds plain engines that run nearly everything.
    for (const cudnnBackendHeurMode_t mode : {CUDNN_HEUR_MODE_A, CUDNN_HEUR_MODE_FALLBACK}) {
      propose(mode);
    }
    if (accepted_.empty() && smallest_) {
      accepted_.push_back(*smallest_);
    }
    return std::move(accepted_);
  }

 private:
  const Descriptor* properties() const {
    return target_.properties_ ? &*target_.properties_ : nullptr;
  }

  void propose(cudnnBackendHeurMode_t mode) {
    if (accepted_.size() >= at_most_) {
      return;
    }
    Descriptor heuristics(CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR);
    heuristics.set(CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH, graph_.native());
    heuristics.set(CUDNN_ATTR_ENGINEHEUR_MODE, mode);
    if (properties() != nullptr) {
      heuristics.set(CUDNN_ATTR_ENGINEHEUR_DEVICEPROP, *properties());
    }
    if (!heuristics.try_finalize()) {
      return;  // the mode knows nothing of such graphs
    }
    const std::size_t count =
        heuristics.count(CUDNN_ATTR_ENGINEHEUR_RESULTS, CUDNN_TYPE_BACKEND_DESCRIPTOR);
    for (const Descriptor& config : heuristics.descriptors(
             CUDNN_ATTR_ENGINEHEUR_RESULTS, CUDNN_BACKEND_ENGINECFG_DESCRIPTOR, count)) {
      if (accepted_.size() < at_most_) {
        consider(config);
      }
    }
  }

  void consider(const Descriptor& config) {
    const std::vector<Descriptor> engine =
        config.descriptors(CUDNN_ATTR_ENGINECFG_ENGINE, CUDNN_BACKEND_ENGINE_DESCRIPTOR, 1);
    if (engine.empty() || !is_allowed(engine.front(), limits_)) {
      return;
    }
    Choice choice = choice_of(config, engine.front());
    try {  // the choice as data must be enough to build it again
      choice.workspace = Plan(graph_, choice, target_).workspace();
    } catch (const Error&) {
      return;
    }
    if (choice.workspace <= limits_.workspace) {
      accepted_.push_back(std::move(choice));
    } else if (!smallest_ || choice.workspace < smallest_->workspace) {
      smallest_ = std::move(choice);
    }
  }

  const OperationGraph& graph_;
  const Target& target_;
  const Limits& limits_;
  std::size_t at_most_;
  std::vector<Choice> accepted_;
  std::optional<Choice> smallest_;  // of those above the limit
};

std::vector<Choice> candidates(const OperationGraph& graph, const Target& target,
                               const Limits& limits, std::size_t at_most) {
  return Candidates(graph, target, limits, at_most).collect();
}

Plan::Plan(const OperationGraph& graph, const Choice& choice, const Target& target)
    : plan_(CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR) {
  const bool live = target.is_live();
  auto parts = configure(graph, choice, live ? nullptr : &*target.properties_);
  check(parts.has_value(), "cuDNN has no " + to_string(choice) + " for this graph");
  parts_ = *std::move(parts);
  plan_.set(CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG, parts_.back());
  if (live) {
    plan_.set(CUDNN_ATTR_EXECUTION_PLAN_HANDLE, target.handle_);
  } else {
    plan_.set(CUDNN_ATTR_EXECUTION_PLAN_DEVICEPROP, *target.properties_);
  }
  plan_.finalize("the plan of " + to_string(choice));
  workspace_ =
      static_cast<std::size_t>(plan_.get<std::int64_t>(CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE));
  for (const OperationGraph::Tensor& tensor : graph.tensors()) {
    if (!tensor.inner) {
      ids_.push_back(tensor.id);
    }
  }
}

const Descriptor& Arguments::bind(std::span<const std::int64_t> ids,
                                  std::span<void* const> pointers, void* workspace) {
  if (!list_ || workspace != bound_workspace_ || !std::ranges::equal(pointers, bound_)) {
    list_.emplace(CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR);
    list_->set(CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS, ids);
    list_->set(CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS, pointers);
    list_->set(CUDNN_ATTR_VARIANT_PACK_WORKSPACE, workspace);
    list_->finalize("the operands of a plan");
    bound_.assign(pointers.begin(), pointers.end());
    bound_workspace_ = workspace;
  }
  return *list_;
}

void Plan::run(cudnnHandle_t handle, Arguments& arguments, std::span<void* const> pointers,
               void* workspace) const {
  check(pointers.size() == ids_.size(), "a cuDNN plan is run on another number of tensors");
  check_cudnn(cudnnBackendExecute(handle, plan_.native(),
                                  arguments.bind(ids_, pointers, workspace).native()),
              "run a plan");
}

}  // namespace cnn::layers::cuda
