#include "layers/drop_path.h"

#include <cmath>
#include <string>

#include "layers/dropout.h"
#include "layers/gate.h"
#include "layers/initializer.h"
#include "layers/operands.h"

namespace cnn::layers {

bool keeps_path(const DropPath& op, std::int32_t step, std::uint64_t example) {
  const std::uint64_t stream = random_bits(op.seed, static_cast<std::uint32_t>(step));
  return (random_bits(stream, example) >> 40) < op.schedule.kept(step);
}

std::vector<TensorDesc> DropPath::infer(std::span<const TensorDesc> in) const {
  require_count(*this, in, 2);
  require(is_real(in[0].type) && in[0].shape.rank() > 0 && in[1].shape.rank() == 0 &&
              in[1].type == DataType::i32,
          *this, in, "takes a real tensor of examples and the step, i32 []");
  require(schedule.drop < (1U << 24) && schedule.steps > 0, *this, in,
          "drops fewer than all examples, over one step or more");
  return {described(in[0].shape, in[0].type)};
}

void DropPath::reference(std::span<const TensorView> in, std::span<const TensorView> out) const {
  const auto x = in[0].as<float>();
  const auto y = out[0].as<float>();
  const std::int32_t step = in[1].as<std::int32_t>()[0];
  const float keep = static_cast<float>(schedule.kept(step)) * 0x1p-24F;
  const std::size_t of_example = x.size() / static_cast<std::size_t>(in[0].desc.shape[0]);
  for (std::size_t i = 0; i < y.size(); ++i) {
    y[i] = gated(x[i] / keep, keeps_path(*this, step, i / of_example));
  }
}

std::vector<std::optional<Value>> DropPath::backward(const Backprop& b) const {
  return {emit(DropPath(schedule, seed), {*b.grad[0], b.in[1]}), std::nullopt};
}

Value drop_path(Value x, double drop, std::int32_t steps) {
  Graph& graph = *x.graph;
  const auto share = static_cast<std::uint32_t>(std::lround(drop * 0x1p24));
  if (!graph.traits().training || !graph.traits().dropout || share == 0) {
    return x;
  }
  // The number of the branch, without its scope, selects its masks.
  const std::string name = graph.unique_name("drop_path");
  const std::uint64_t branch = fnv1a(std::string_view(name).substr(name.rfind('/') + 1));
  return emit(DropPath({share, steps}, random_bits(graph.traits().seed, branch)),
              {x, global_step(graph)});
}

}  // namespace cnn::layers
