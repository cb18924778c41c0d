#include "layers/activation.h"
#include "layers/batch_norm.h"
#include "layers/operands.h"
#include "layers/relu_mask.h"
#include "layers/sliced_norm.h"
#include "tests/layers/cases.h"

namespace cnn::tests {

namespace {

using layers::BatchNormAttributes;

Value vector(Graph& graph, std::string name, std::int64_t size) {
  return graph.parameter(std::move(name), layers::described({size}, DataType::f32), {});
}

std::string variant(std::string name, const BatchNormAttributes& a) {
  name += a.scale ? "_scale" : "";
  name += a.relu ? "_relu" : "";
  name += a.is_limited() ? "_limit" : "";
  name += a.residual ? "_residual" : "";
  return name + (a.mask ? "_mask" : "");
}

// Returns the operands x, [gamma], beta, [mean, variance], [residual], which both variants of the
// op take.
std::vector<Value> operands(Graph& graph, const BatchNormAttributes& a, const Shape& x,
                            bool inference) {
  std::vector<Value> in{image(graph, "x", x)};
  if (a.scale) {
    in.push_back(vector(graph, "gamma", x[1]));
  }
  in.push_back(vector(graph, "beta", x[1]));
  if (inference) {
    in.push_back(vector(graph, "moving_mean", x[1]));
    in.push_back(vector(graph, "moving_variance", x[1]));
  }
  if (a.residual) {
    in.push_back(image(graph, "residual", x));
  }
  return in;
}

std::vector<BatchNormAttributes> variants() {
  std::vector<BatchNormAttributes> result;
  for (int bits = 0; bits < 8; ++bits) {
    BatchNormAttributes a;
    a.scale = (bits & 1) != 0;
    a.relu = (bits & 2) != 0;
    a.residual = (bits & 4) != 0;
    result.push_back(a);
  }
  // About a sixth of the values of a norm are above its deviation.
  for (const bool scale : {false, true}) {
    result.push_back({.scale = scale, .relu = true, .limit = 1, .variables = {}});
  }
  return result;
}

Case training(const BatchNormAttributes& a, const Shape& x, Weight weight) {
  return {.name = variant("batch_norm_" + std::to_string(x[1]), a),
          .build =
              [=](Graph& graph) {
                return emit_all(layers::BatchNorm(a), operands(graph, a, x, false)).front();
              },
          .weight = weight,
          .tolerance = 1e-4};
}

Case inference(const BatchNormAttributes& a, const Shape& x) {
  return {.name = variant("batch_norm_inference_" + std::to_string(x[1]), a),
          .build = [=](Graph& graph) -> std::optional<Value> {
            emit_all(layers::BatchNormInference(a), operands(graph, a, x, true));
            return std::nullopt;
          },
          .training = false};
}

// Two gradients join before the norm. Autodiff builds no such node, so the case builds it itself.
Case joined_backward(const BatchNormAttributes& a, const Shape& x) {
  const auto build = [=](Graph& graph) -> std::optional<Value> {
    const layers::BatchNormBackward op(a, true);
    std::vector<Value> in{image(graph, "x", x)};
    if (a.scale) {
      in.push_back(vector(graph, "gamma", x[1]));
    }
    for (const char* name : {"beta", "moving_mean", "moving_variance"}) {
      in.push_back(vector(graph, name, x[1]));
    }
    in.push_back(image(graph, "dy", x));
    in.push_back(image(graph, "dy2", x));
    if (op.passes_gradient()) {
      in.push_back(a.mask ? graph.input("mask", layers::relu_mask_of(x)) : image(graph, "y", x));
    }
    emit_all(op, in);
    return std::nullopt;
  };
  return {.name = variant("joined_batch_norm_backward_" + std::to_string(x[1]), a),
          .build = build,
          .tolerance = 1e-4};
}

// The parts of a norm of two slices, of which the gradient shares the operands of
// joined_backward().
Case sliced(const BatchNormAttributes& a, const Shape& x, bool joined) {
  const auto build = [=](Graph& graph) -> std::optional<Value> {
    const Value image_of_slice = image(graph, "x", x);
    const std::vector<Value> moments =
        emit_all(layers::NormMoments(), std::vector<Value>{image_of_slice});
    emit_all(layers::MergeMoments({6, 9}),
             std::vector<Value>{moments[0], moments[1], vector(graph, "mean", x[1]),
                                vector(graph, "squares", x[1])});
    std::vector<Value> in{image_of_slice};
    if (a.scale) {
      in.push_back(vector(graph, "gamma", x[1]));
    }
    for (const char* name : {"beta", "moving_mean", "moving_variance"}) {
      in.push_back(vector(graph, name, x[1]));
    }
    std::vector<Value> for_gradient = in;
    std::vector<Value> gradients{image(graph, "dy", x)};
    if (joined) {
      gradients.push_back(image(graph, "dy2", x));
    }
    in.insert(in.end(), gradients.begin(), gradients.end());
    const layers::NormGradientSums op(a, joined);
    if (op.passes_gradient()) {
      in.push_back(image(graph, "y", x));
    }
    const std::vector<Value> sums = emit_all(op, in);
    for_gradient.insert(for_gradient.end(), {sums[0], sums[1]});
    for_gradient.insert(for_gradient.end(), gradients.begin(), gradients.end());
    emit_all(layers::NormInputGradient(a, 500, joined), for_gradient);
    return std::nullopt;
  };
  return {
      .name = variant((joined ? "joined_sliced_norm_" : "sliced_norm_") + std::to_string(x[1]), a),
      .build = build,
      .tolerance = 1e-4};
}

Case fold(bool scale, bool bias) {
  const auto build = [=](Graph& graph) -> std::optional<Value> {
    std::vector<Value> in{
        graph.parameter("w", layers::described({17, 5, 3, 3}, DataType::f32), {})};
    if (scale) {
      in.push_back(vector(graph, "gamma", 17));
    }
    for (const char* name : {"beta", "moving_mean", "moving_variance"}) {
      in.push_back(vector(graph, name, 17));
    }
    if (bias) {
      in.push_back(vector(graph, "bias", 17));
    }
    emit_all(layers::FoldBatchNorm(1e-3, scale, bias), in);
    return std::nullopt;
  };
  return {.name = std::string("fold_batch_norm") + (scale ? "_scale" : "") + (bias ? "_bias" : ""),
          .build = build,
          .training = false};
}

}  // namespace

std::vector<Case> batch_norm_cases() {
  std::vector<Case> result;
  for (const BatchNormAttributes& a : variants()) {
    result.push_back(training(a, {3, 17, 5, 7}, Weight::small));
    result.push_back(training(a, {2, 64, 14, 14}, Weight::medium));
    result.push_back(inference(a, {2, 20, 5, 7}));
    result.push_back(joined_backward(a, {3, 17, 5, 7}));
    result.push_back(joined_backward(a, {2, 64, 9, 9}));
    result.push_back(sliced(a, {1, 17, 5, 7}, false));
    result.push_back(sliced(a, {3, 64, 9, 9}, true));
  }
  for (const bool scale : {false, true}) {
    const BatchNormAttributes a{
        .scale = scale, .relu = true, .residual = true, .mask = true, .variables = {}};
    result.push_back(training(a, {3, 17, 5, 7}, Weight::small));
    result.push_back(training(a, {2, 64, 14, 14}, Weight::medium));
    result.push_back(training(a, {2, 24, 5, 7}, Weight::small));
    result.push_back(joined_backward(a, {3, 17, 5, 7}));
    result.push_back(joined_backward(a, {2, 64, 9, 9}));
  }
  const BatchNormAttributes common{.epsilon = 1e-5, .scale = true, .relu = true, .variables = {}};
  for (const Shape& x : {Shape{2, 3, 5, 5}, Shape{4, 16, 3, 3}, Shape{9, 100, 1, 1}}) {
    result.push_back(training(common, x, Weight::small));
  }
  for (const bool scale : {false, true}) {
    result.push_back(fold(scale, false));
    result.push_back(fold(scale, true));
  }
  result.push_back(
      {.name = "moving_averages_of_two_layers", .build = [](Graph& graph) -> std::optional<Value> {
         const Value x = image(graph, "x", {2, 17, 5, 3});
         const Value y = layers::batch_norm(x, {.decay = 0.9, .scale = true});
         layers::conv_bn(y, {.filters = 20}, {.decay = 0.5});
         layers::append_moving_averages(graph);
         return std::nullopt;
       }});
  return result;
}

}  // namespace cnn::tests
