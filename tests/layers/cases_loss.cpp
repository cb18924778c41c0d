#include "layers/dropout.h"
#include "layers/loss.h"
#include "layers/operands.h"
#include "tests/layers/cases.h"

namespace cnn::tests {

namespace {

Case cross_entropy(std::string name, std::int64_t batch, std::int64_t classes) {
  return {.name = std::move(name), .build = [=](Graph& graph) {
            const Value logits = image(graph, "logits", {batch, classes});
            const Value labels = graph.input("labels", layers::described({batch}, DataType::i32));
            return layers::softmax_cross_entropy(logits, labels);
          }};
}

std::optional<Value> accuracy(Graph& graph, std::int64_t batch, std::int64_t classes) {
  const Value logits = graph.input("logits", layers::described({batch, classes}, DataType::f32));
  const Value labels = graph.input("labels", layers::described({batch}, DataType::i32));
  emit(layers::Accuracy(), {logits, labels});
  return std::nullopt;
}

}  // namespace

std::vector<Case> loss_cases() {
  return {
      cross_entropy("softmax_cross_entropy_11", 5, 11),
      cross_entropy("softmax_cross_entropy_1001", 3, 1001),
      cross_entropy("softmax_cross_entropy_one_row", 1, 10),
      {.name = "accuracy_11", .build = [](Graph& graph) { return accuracy(graph, 33, 11); }},
      {.name = "accuracy_1001", .build = [](Graph& graph) { return accuracy(graph, 4, 1001); }},
      {.name = "synthetic_labels",
       .build = [](Graph& graph) -> std::optional<Value> {
         emit(layers::SyntheticLabels(37, 1001, 7), {layers::global_step(graph)});
         return std::nullopt;
       }},
  };
}

}  // namespace cnn::tests
