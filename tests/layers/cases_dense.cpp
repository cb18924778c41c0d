#include "layers/dense.h"
#include "layers/operands.h"
#include "tests/layers/cases.h"

namespace cnn::tests {

namespace {

struct Row {
  std::string_view name;
  std::int64_t rows = 0, in = 0, out = 0;
  layers::DenseAttributes attributes;
  Weight weight = Weight::small;
};

constexpr Row rows[] = {
    {"dense_5_17_11", 5, 17, 11, {}},
    {"dense_1_100_3", 1, 100, 3, {}},
    {"dense_to_one_unit", 4, 33, 1, {}},
    {"dense_from_one_unit", 4, 1, 20, {}},
    {"dense_fused_relu", 3, 20, 16, {.bias = true, .relu = true}},
    {"dense_without_bias", 3, 16, 20, {.bias = false, .relu = false}},
    {"dense_resnet50", 2, 2048, 1001, {}, Weight::medium},
    {"dense_vgg", 1, 25088, 4096, {}, Weight::heavy},
};

std::optional<Value> build_dense(Graph& graph, const Row& row) {
  std::vector<Value> in{
      image(graph, "x", {row.rows, row.in}),
      graph.parameter("weights", layers::described({row.in, row.out}, DataType::f32), {})};
  if (row.attributes.bias) {
    in.push_back(graph.parameter("biases", layers::described({row.out}, DataType::f32), {}));
  }
  return emit_all(layers::Dense(row.attributes), in).front();
}

}  // namespace

std::vector<Case> dense_cases() {
  std::vector<Case> result;
  for (const Row& row : rows) {
    result.push_back({.name = std::string(row.name),
                      .build = [&row](Graph& graph) { return build_dense(graph, row); },
                      .weight = row.weight,
                      .tolerance = row.weight == Weight::small ? 2e-5 : 1e-4});
  }
  for (const Shape& shape : {Shape{2, 17, 3, 5}, Shape{2, 256, 6, 6}, Shape{1, 64, 1, 1}}) {
    result.push_back(
        {.name = "flatten_" + std::to_string(shape[1]),
         .build = [shape](Graph& graph) { return layers::flatten(image(graph, "x", shape)); }});
  }
  return result;
}

}  // namespace cnn::tests
