#include <initializer_list>

#include "layers/operands.h"
#include "layers/optimizer.h"
#include "layers/stale_gradient.h"
#include "tests/layers/cases.h"

namespace cnn::tests {

namespace {

using layers::Rule;
using layers::UpdateAttributes;

// Three parameters, one of them without weight decay, and their gradients as inputs.
Case update(std::string name, const UpdateAttributes& attributes) {
  const auto build = [attributes](Graph& graph) -> std::optional<Value> {
    layers::OptimizerOptions options{.update = attributes};
    layers::loss_seed(graph, options);
    std::vector<Value> parameters;
    std::vector<Value> gradients;
    for (const Shape& shape : {Shape{17, 5, 3, 3}, Shape{33}, Shape{20, 11}}) {
      const std::string suffix = std::to_string(parameters.size());
      const TensorDesc desc = layers::described(shape, DataType::f32);
      parameters.push_back(
          graph.parameter("w" + suffix, desc, {.initializer = {}, .decay = suffix != "1"}));
      gradients.push_back(graph.input("g" + suffix, desc));
    }
    layers::append_update(graph, parameters, gradients, options);
    return std::nullopt;
  };
  return {.name = std::move(name), .build = build};
}

// The second and the third parameter have 16-bit copies, as keep_copies() makes them in graphs that
// compute in 16 bits. In f32 no parameter has one.
Case update_with_copies(std::string name, UpdateAttributes attributes) {
  const auto build = [attributes](Graph& graph) mutable -> std::optional<Value> {
    const std::vector<Shape> shapes{{9}, {17, 5, 3, 3}, {33}};
    std::vector<Value> in;
    const auto add_inputs = [&](std::initializer_list<const char*> names) {
      for (const char* each : names) {
        in.push_back(graph.input(each, layers::described({}, DataType::f32)));
      }
    };
    const auto add_states = [&](const std::string& end, DataType type, std::size_t first) {
      for (std::size_t i = first; i < shapes.size(); ++i) {
        in.push_back(graph.state("w" + std::to_string(i) + end, layers::described(shapes[i], type),
                                 {}, /*saved=*/false));
      }
    };
    add_inputs({"learning_rate"});
    const layers::RuleRow& row = layers::row_of(attributes.rule);
    if (row.has_powers) {
      add_inputs({"beta1_power", "beta2_power"});
    }
    add_states("", DataType::f32, 0);
    add_states("/gradient", DataType::f32, 0);
    for (const auto& slot : row.slots) {
      add_states("/" + std::string(slot.suffix), DataType::f32, 0);
    }
    attributes.decay = {true, false, true};
    attributes.copied.clear();
    if (graph.traits().compute != DataType::f32) {
      attributes.copied = {1, 2};
      add_states("/copy", graph.traits().compute, 1);
    }
    emit_all(layers::Update(attributes, shapes.size()), in);
    return std::nullopt;
  };
  return {.name = std::move(name), .build = build};
}

// One parameter has weight decay, the other has none.
Case stale_gradients() {
  const auto build = [](Graph& graph) -> std::optional<Value> {
    const TensorDesc desc = layers::described({17, 5, 3, 3}, DataType::f32);
    const std::vector<Value> parameters{
        graph.parameter("w0", desc, {.initializer = {}}),
        graph.parameter("w1", desc, {.initializer = {}, .decay = false})};
    std::vector<Value> gradients{graph.input("g0", desc), graph.input("g1", desc)};
    layers::append_stale_gradients(parameters, gradients, 0.125);
    return std::nullopt;
  };
  return {.name = "stale_gradients", .build = build};
}

UpdateAttributes rule(Rule which) {
  UpdateAttributes attributes;
  attributes.rule = which;
  return attributes;
}

UpdateAttributes with_everything(Rule which) {
  UpdateAttributes attributes = rule(which);
  attributes.weight_decay = 0.125;
  attributes.clip = 0.75;
  attributes.loss_scale = 2;
  return attributes;
}

UpdateAttributes automatic(Rule which) {
  UpdateAttributes attributes = with_everything(which);
  attributes.automatic_loss_scale = true;
  return attributes;
}

}  // namespace

std::vector<Case> optimizer_cases() {
  std::vector<Case> result{stale_gradients()};
  for (const layers::RuleRow& row : layers::rules()) {
    const std::string name = "update_" + std::string(row.name);
    result.push_back(update(name, rule(row.rule)));
    result.push_back(update(name + "_with_decay_clip_and_scale", with_everything(row.rule)));
    result.push_back(update(name + "_with_automatic_loss_scale", automatic(row.rule)));
    result.push_back(update_with_copies(name + "_with_copies", with_everything(row.rule)));
  }
  return result;
}

}  // namespace cnn::tests
