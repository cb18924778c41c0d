#include "layers/stale_gradient.h"

#include <utility>

#include "layers/operands.h"
#include "runtime/error.h"

namespace cnn::layers {

std::vector<TensorDesc> StaleGradient::infer(std::span<const TensorDesc> in) const {
  require_count(*this, in, decay != 0 ? 3 : 2);
  for (const TensorDesc& desc : in) {
    require(desc.type == DataType::f32 && desc.shape == in[0].shape, *this, in,
            "takes f32 tensors of one shape");
  }
  return {in[0]};
}

void StaleGradient::reference(std::span<const TensorView> in,
                              std::span<const TensorView> out) const {
  const std::span<const float> gradient = in[0].as<float>();
  const std::span<float> kept = in[1].as<float>(), late = out[0].as<float>();
  for (std::size_t i = 0; i < kept.size(); ++i) {
    const double decayed = decay != 0 ? decay * in[2].as<float>()[i] : 0;
    const double today = gradient[i];  // the output may overwrite it
    late[i] = static_cast<float>(kept[i] - decayed);
    kept[i] = static_cast<float>(today + decayed);
  }
}

void append_stale_gradients(std::span<const Value> parameters, std::span<Value> gradients,
                            double weight_decay) {
  for (std::size_t i = 0; i < gradients.size(); ++i) {
    Graph& graph = *gradients[i].graph;
    const TensorInfo& info = graph.info(parameters[i].id);
    const double decay = info.decay ? weight_decay : 0;
    const Value kept = graph.state(info.name + "/stale_gradient", gradients[i].desc(),
                                   {Initializer::Kind::constant, 0, 0}, false);
    std::vector<Value> in{gradients[i], kept};
    if (decay != 0) {
      in.push_back(parameters[i]);
    }
    gradients[i] = emit_all(StaleGradient(decay), in).front();
  }
}

}  // namespace cnn::layers
