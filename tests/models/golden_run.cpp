#include "tests/models/golden_run.h"

#include <algorithm>
#include <cmath>

#include "layers/cpu/isa.h"
#include "layers/cpu/kernels.h"
#include "layers/elementwise.h"
#include "layers/initializer.h"
#include "layers/loss.h"
#include "layers/optimizer.h"
#include "layers/passes/layout.h"
#include "models/catalog.h"
#include "runtime/checkpoint_layout.h"
#include "runtime/cpu/reference_kernel.h"
#include "runtime/error.h"
#include "runtime/program.h"
#include "tests/support/formula.h"

namespace cnn::tests {
namespace {

std::vector<float> to_saved(const TensorInfo& info, std::span<const float> plain_values) {
  std::vector<float> saved(plain_values.size());
  to_checkpoint_layout(info, plain_values, saved);
  return saved;
}

// [N, pixels, 3] -> [N, 3, pixels].
std::vector<float> channels_first(std::span<const float> nhwc, std::int64_t batch) {
  const std::size_t pixels = nhwc.size() / static_cast<std::size_t>(3 * batch);
  std::vector<float> nchw(nhwc.size());
  for (std::size_t i = 0; i < nhwc.size(); ++i) {
    const std::size_t image = i / (3 * pixels);
    const std::size_t pixel = i / 3 % pixels;
    nchw[(image * 3 + i % 3) * pixels + pixel] = nhwc[i];
  }
  return nchw;
}

std::vector<float> starting_values(const TensorInfo& info, const Golden& golden) {
  std::vector<float> values(static_cast<std::size_t>(info.desc.shape.elements()));
  if (!golden.after.contains(info.name) && info.role != Role::parameter &&
      !info.name.ends_with("/moving_mean") && !info.name.ends_with("/moving_variance")) {
    layers::fill(info.initializer, golden.seed, info.name, values);  // a slot
    return values;
  }
  from_checkpoint_layout(info, formula_variable(info.name, checkpoint_shape(info), golden.seed),
                         values);
  return values;
}

}  // namespace

Engine reference_engine() {
  Engine engine;
  add_reference(engine.kernels);
  return engine;
}

Engine cpu_engine() {
  Engine engine{.layout = layers::cpu::preferred_layout(DataType::f32),
                .images = Layout::nhwc,
                .fusion = layers::Fusion::conv};
  add_reference(engine.kernels);
  layers::cpu::add_kernels(engine.kernels);
  return engine;
}

GoldenRun::GoldenRun(const Golden& golden, const Engine& engine)
    : golden_(golden), engine_(engine), stream_(device_.make_stream(Lane::compute)) {
  const layers::PrologueSplit graphs = build().graphs;
  variables_.emplace(*graphs.step);
  storage_ = device_.allocate(variables_->bytes());
  variables_->attach(storage_.data());
  load();
  const std::int32_t background = golden.data_set == "imagenet" ? 1 : 0;
  const auto classes =
      static_cast<std::int32_t>(models::find(golden.data_set, golden.model).classes);
  images_ = formula_images(golden.batch_size, golden.image_size, golden.seed);
  if (engine.images == Layout::nchw) {
    images_ = channels_first(images_, golden.batch_size);
  }
  labels_ = formula_labels(golden.batch_size, background, classes - 1, golden.seed);
  rate_ = static_cast<float>(golden.learning_rate);
  inputs_ = inputs(*graphs.step);
  executor_ = executor_of(make_plan(graphs.step, engine.kernels));
  if (graphs.prologue) {
    executor_of(make_plan(graphs.prologue, engine.kernels))->run({});
  }
}

layers::PipelineResult GoldenRun::build() {
  const models::Model& model = models::find(golden_.data_set, golden_.model);
  Graph graph(Traits{.training = golden_.training, .dropout = false});
  const Shape shape{golden_.batch_size, model.channels, golden_.image_size, golden_.image_size};
  const Value raw = graph.input("images", {.shape = shape, .layout = engine_.images});
  const Value images = emit(layers::Normalise(1, 0, DataType::f32), {raw});
  const Value labels =
      graph.input("labels", {.shape = {golden_.batch_size}, .type = DataType::i32});
  const Value logits = models::logits(model, images);
  const Value loss = layers::softmax_cross_entropy(logits, labels);
  graph.output("logits", logits);
  graph.output("base_loss", loss);
  layers::PipelineOptions options{.fusion = engine_.fusion,
                                  .layout = layers::image_layout(graph, engine_.layout)};
  if (golden_.training) {
    options.loss = loss.id;
    options.training = training_options();
  }
  return layers::run_pipeline(graph, engine_.kernels, options);
}

layers::TrainingOptions GoldenRun::training_options() {
  layers::TrainingOptions options;
  options.optimizer.update.rule = layers::find_rule(golden_.optimizer).rule;
  options.optimizer.update.weight_decay = golden_.weight_decay;
  options.on_gradients = [this](std::span<const Value> parameters, std::span<Value> gradients) {
    for (std::size_t i = 0; i < parameters.size(); ++i) {
      Graph& graph = *parameters[i].graph;
      parameters_.push_back(graph.info(parameters[i].id).name);
      graph.output(parameters_.back(), gradients[i]);
    }
  };
  return options;
}

std::unique_ptr<Executor> GoldenRun::executor_of(StepPlan plan) {
  const Buffer& arena = arenas_.emplace_back(device_.allocate(plan.memory.device_bytes));
  return std::make_unique<Executor>(make_program(std::move(plan), engine_.kernels), device_,
                                    *variables_, std::span(arena.data(), arena.bytes()));
}

void GoldenRun::load() {
  for (const Variable& variable : variables_->all()) {
    if (variable.info.role == Role::derived) {
      continue;  // the prologue makes it
    }
    std::vector<float> values = starting_values(variable.info, golden_);
    move({plain(variable.info.desc), reinterpret_cast<std::byte*>(values.data())},
         variables_->view(variable));
  }
}

void GoldenRun::move(const TensorView& from, const TensorView& to) {
  if (from.desc == to.desc) {
    stream_->copy(to.data, from.data, from.desc.bytes());
    stream_->synchronize();
    return;
  }
  const layers::Convert op(to.desc.type);
  const Signature signature{.in = {from.desc}, .out = {to.desc}};
  const std::optional<KernelSpec> spec = engine_.kernels.describe(op, signature);
  check(spec && spec->in == signature.in && spec->out == signature.out,
        "no kernel converts " + to_string(from.desc) + " to " + to_string(to.desc));
  const Buffer workspace = device_.allocate(spec->workspace + 1);
  const Operands operands{
      .in = {from}, .out = {to}, .workspace = {workspace.data(), spec->workspace}};
  const std::unique_ptr<Kernel> kernel = engine_.kernels.make(op, signature);
  kernel->run(*stream_, operands);
  stream_->synchronize();
}

std::vector<TensorView> GoldenRun::inputs(const Graph& graph) {
  std::vector<TensorView> views;
  for (const TensorId id : graph.inputs()) {
    const TensorInfo& info = graph.info(id);
    void* data = nullptr;
    if (info.name == "images") {
      data = images_.data();
    } else if (info.name == "labels") {
      data = labels_.data();
    } else if (info.name == "learning_rate") {
      data = &rate_;
    } else {
      check(info.name == "global_step", "unknown input " + info.name);
      data = &step_;
    }
    views.push_back({info.desc, static_cast<std::byte*>(data)});
  }
  return views;
}

void GoldenRun::step() {
  executor_->run(inputs_);
  ++step_;
}

std::span<const float> GoldenRun::output(std::string_view name) const {
  const std::span<const Output> outputs = executor_->plan().graph->outputs();
  const auto found = std::find_if(outputs.begin(), outputs.end(),
                                  [&](const Output& output) { return output.name == name; });
  check(found != outputs.end(), "no output is called " + std::string(name));
  return executor_->results()[static_cast<std::size_t>(found - outputs.begin())].as<float>();
}

std::vector<float> GoldenRun::variable(std::string_view name) {
  const Variable* variable = variables_->find(name);
  check(variable != nullptr, "no variable is called " + std::string(name));
  std::vector<float> values(static_cast<std::size_t>(variable->info.desc.shape.elements()));
  move(variables_->view(*variable),
       {plain(variable->info.desc), reinterpret_cast<std::byte*>(values.data())});
  return to_saved(variable->info, values);
}

std::vector<std::string> GoldenRun::variables() const {
  std::vector<std::string> names;
  for (const Variable& variable : variables_->all()) {
    if (variable.info.saved && golden_.after.contains(variable.info.name)) {
      names.push_back(variable.info.name);
    }
  }
  return names;
}

std::vector<float> GoldenRun::gradient(std::string_view parameter) const {
  const TensorInfo& info = variables_->find(parameter)->info;
  std::vector<float> gradient = to_saved(info, output(parameter));
  if (info.decay) {
    const std::vector<float> start =
        formula_variable(parameter, checkpoint_shape(info), golden_.seed);
    for (std::size_t i = 0; i < gradient.size(); ++i) {
      gradient[i] += static_cast<float>(golden_.weight_decay) * start[i];
    }
  }
  return gradient;
}

double GoldenRun::total_loss() const {
  return output("base_loss")[0] + golden_.weight_decay * output("l2")[0];
}

double norm(std::span<const float> values) {
  double sum = 0;
  for (const float value : values) {
    sum += static_cast<double>(value) * value;
  }
  return std::sqrt(sum);
}

}  // namespace cnn::tests
