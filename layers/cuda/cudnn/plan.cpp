#include "layers/cuda/cudnn/plan.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "runtime/error.h"

namespace cnn::layers::cuda {
namespace {

// Returns the descriptors of an engine configuration, the configuration last; nothing if cuDNN
// rejects the engine or a knob.
std::optional<std::vector<Descriptor>> configure(const NativeGraph& graph, const Choice& choice) {
  std::vector<Descriptor> parts;
  Descriptor engine(CUDNN_BACKEND_ENGINE_DESCRIPTOR);
  engine.set(CUDNN_ATTR_ENGINE_OPERATION_GRAPH, graph.native());
  engine.set(CUDNN_ATTR_ENGINE_GLOBAL_INDEX, choice.engine);
  if (const Descriptor* properties = graph.target().properties()) {
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
  // The ops define their sums in f32, which excludes reduced-precision reductions.
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

std::string to_string(const Choice& choice) {
  std::string text = "engine " + std::to_string(choice.engine) + " knobs ";
  std::string separator;
  for (const Choice::Knob& knob : choice.knobs) {
    text += separator + std::to_string(knob.type) + "=" + std::to_string(knob.value);
    separator = ",";
  }
  return choice.knobs.empty() ? text + "-" : text;
}

namespace {

// Collects the engine configurations that cuDNN's heuristics propose and the limits allow.
class Candidates {
 public:
  Candidates(const NativeGraph& graph, const Limits& limits, std::size_t at_most)
      : graph_(graph), limits_(limits), at_most_(at_most) {}

  std::vector<Choice> collect() {
    // The fallback mode proposes general engines that support almost every graph.
    for (const cudnnBackendHeurMode_t mode : {CUDNN_HEUR_MODE_A, CUDNN_HEUR_MODE_FALLBACK}) {
      propose(mode);
    }
    if (accepted_.empty() && smallest_) {
      accepted_.push_back(*smallest_);
    }
    return std::move(accepted_);
  }

 private:
  void propose(cudnnBackendHeurMode_t mode) {
    if (accepted_.size() >= at_most_) {
      return;
    }
    Descriptor heuristics(CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR);
    heuristics.set(CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH, graph_.native());
    heuristics.set(CUDNN_ATTR_ENGINEHEUR_MODE, mode);
    if (const Descriptor* properties = graph_.target().properties()) {
      heuristics.set(CUDNN_ATTR_ENGINEHEUR_DEVICEPROP, *properties);
    }
    if (!heuristics.try_finalize()) {
      return;  // this mode does not support the graph
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
    try {  // a plan is built from the choice as data, as a later run will do
      choice.workspace = Plan(graph_, choice).workspace();
    } catch (const Error&) {
      return;
    }
    if (choice.workspace <= limits_.workspace) {
      accepted_.push_back(std::move(choice));
    } else if (!smallest_ || choice.workspace < smallest_->workspace) {
      smallest_ = std::move(choice);
    }
  }

  const NativeGraph& graph_;
  const Limits& limits_;
  std::size_t at_most_;
  std::vector<Choice> accepted_;
  std::optional<Choice> smallest_;  // by workspace, among those above the limit
};

}  // namespace

std::vector<Choice> candidates(const NativeGraph& graph, const Limits& limits,
                               std::size_t at_most) {
  return Candidates(graph, limits, at_most).collect();
}

Plan::Plan(const NativeGraph& graph, const Choice& choice)
    : plan_(CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR), ids_(graph.operations().in_memory()) {
  auto parts = configure(graph, choice);
  check(parts.has_value(), "cuDNN has no " + to_string(choice) + " for this graph");
  parts_ = *std::move(parts);
  plan_.set(CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG, parts_.back());
  if (const Descriptor* properties = graph.target().properties()) {
    plan_.set(CUDNN_ATTR_EXECUTION_PLAN_DEVICEPROP, *properties);
  } else {
    plan_.set(CUDNN_ATTR_EXECUTION_PLAN_HANDLE, graph.target().handle());
  }
  plan_.finalize("the plan of " + to_string(choice));
  workspace_ =
      static_cast<std::size_t>(plan_.get<std::int64_t>(CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE));
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
