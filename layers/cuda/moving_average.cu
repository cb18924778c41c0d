#include <algorithm>
#include <vector>

#include "layers/batch_norm.h"
#include "layers/cuda/own_kernel.h"
#include "layers/cuda/rows.h"

// Exponential moving averages of batch statistics. One launch updates many layers, because a launch
// per layer would take longer than moving the few kilobytes of its vectors.
namespace cnn::layers::cuda {

namespace {

struct AverageOfLayer {
  float *moving_mean = nullptr, *moving_variance = nullptr;
  const float *mean = nullptr, *variance = nullptr;
  double decay = 0;
  double unbiased = 1;  // n / (n - 1)
  int channels = 0;
};

// The kernel takes its table of layers by value; kernel parameters are limited to 4 KB.
constexpr std::size_t layers_per_launch = 72;
struct Averages {
  AverageOfLayer layers[layers_per_launch];  // std::array has no operator[] on a device
};
static_assert(sizeof(Averages) <= 4096);

constexpr int average_threads = 128;

// blockIdx.y is the layer; one thread per channel.
__global__ void __launch_bounds__(average_threads) advance_averages(Averages averages) {
  const AverageOfLayer& layer = averages.layers[blockIdx.y];
  const int channel = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  if (channel >= layer.channels) {
    return;
  }
  const double weight_of_batch = 1 - layer.decay;
  layer.moving_mean[channel] = static_cast<float>(layer.decay * layer.moving_mean[channel] +
                                                  weight_of_batch * layer.mean[channel]);
  layer.moving_variance[channel] =
      static_cast<float>(layer.decay * layer.moving_variance[channel] +
                         weight_of_batch * layer.unbiased * layer.variance[channel]);
}

class Advance {
 public:
  explicit Advance(const MovingAverage& op) : layers_(op.layers) {}

  void operator()(Stream& stream, const Operands& operands) const {
    for (std::size_t first = 0; first < layers_.size(); first += layers_per_launch) {
      const std::size_t count = std::min(layers_per_launch, layers_.size() - first);
      Averages averages{};
      int widest = 0;
      for (std::size_t i = 0; i < count; ++i) {
        averages.layers[i] = layer(first + i, operands);
        widest = std::max(widest, averages.layers[i].channels);
      }
      const dim3 grid(launch_count(divide_up(widest, average_threads)),
                      static_cast<unsigned>(count));
      cnn::cuda::launch(advance_averages, grid, dim3(average_threads), 0, stream, averages);
    }
  }

 private:
  AverageOfLayer layer(std::size_t index, const Operands& operands) const {
    const auto vector = [&](std::size_t i) { return data_of<float>(operands.in[4 * index + i]); };
    const double count = layers_[index].count;
    return {.moving_mean = vector(0),
            .moving_variance = vector(1),
            .mean = vector(2),
            .variance = vector(3),
            .decay = layers_[index].decay,
            .unbiased = count / std::max(count - 1, 1.0),
            .channels = static_cast<int>(operands.in[4 * index].desc.shape[0])};
  }

  std::vector<MovingAverage::Layer> layers_;
};

}  // namespace

void add_moving_average_rows(KernelTable& table) {
  table.add<MovingAverage>(
      [](const MovingAverage& /*op*/, const Signature& request) -> std::optional<KernelSpec> {
        return in_nhwc(request);
      },
      [](const MovingAverage& op, const Signature& /*s*/) { return own_kernel(Advance(op)); });
}

}  // namespace cnn::layers::cuda
