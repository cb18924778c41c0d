#include "layers/dropout.h"

#include <string>

#include "layers/gate.h"
#include "layers/initializer.h"
#include "layers/operands.h"

namespace cnn::layers {

bool keeps(std::uint64_t seed, std::int32_t step, std::uint64_t index, double keep) {
  const std::uint64_t stream = random_bits(seed, static_cast<std::uint32_t>(step));
  return static_cast<double>(random_bits(stream, index) >> 40) < keep * 0x1p24;
}

std::vector<TensorDesc> Dropout::infer(std::span<const TensorDesc> in) const {
  require_count(*this, in, 2);
  require(is_real(in[0].type) && in[1].shape.rank() == 0 && in[1].type == DataType::i32, *this, in,
          "takes a real tensor and the step, i32 []");
  return {described(in[0].shape, in[0].type)};
}

void Dropout::reference(std::span<const TensorView> in, std::span<const TensorView> out) const {
  const auto x = in[0].as<float>();
  const std::int32_t step = in[1].as<std::int32_t>()[0];
  const auto y = out[0].as<float>();
  for (std::size_t i = 0; i < y.size(); ++i) {
    y[i] = gated(x[i] / static_cast<float>(keep), keeps(seed, step, i, keep));
  }
}

std::vector<std::optional<Value>> Dropout::backward(const Backprop& b) const {
  return {emit(Dropout(keep, seed), {*b.grad[0], b.in[1]}), std::nullopt};
}

Value dropout(Value x, double keep) {
  Graph& graph = *x.graph;
  if (!graph.traits().training || !graph.traits().dropout) {
    return x;
  }
  // The number of the layer, without its scope, selects its masks.
  const std::string name = graph.unique_name("dropout");
  const std::uint64_t layer = fnv1a(std::string_view(name).substr(name.rfind('/') + 1));
  return emit(Dropout(keep, random_bits(graph.traits().seed, layer)), {x, global_step(graph)});
}

Value global_step(Graph& graph) {
  if (const std::optional<TensorId> id = graph.find("global_step")) {
    return {&graph, *id};
  }
  return graph.input("global_step", described({}, DataType::i32));
}

}  // namespace cnn::layers
