#include "layers/cuda/library/fused_graph.h"

namespace cnn::layers::cuda {
namespace {

// Gives tensors their numbers, in order.
class Builder {
 public:
  Builder(const FusedGraph& graph, OperationGraph& into) : g_(graph), into_(into) {}

  void run() {
    const ConvGraph& conv = g_.conv;
    x_ = stored(conv.x, conv.type);
    w_ = stored(conv.w, conv.type);
    y_ = stored(conv.y, conv.type);
    std::int64_t image = x_;
    if (g_.prologue) {
      const std::int64_t a = stored(vector(conv.x), conv.type);
      const std::int64_t b = stored(vector(conv.x), conv.type);
      image = normalised(a, b);
    }
    if (g_.norm) {
      backward_through_norm();
    } else {
      convolution(image);
    }
    if (g_.statistics) {
      const std::int64_t sum = stored(vector(conv.y), DataType::f32);
      into_.statistics(y_, sum, stored(vector(conv.y), DataType::f32));
    }
    into_.finish();
  }

 private:
  static Shape vector(const Shape& image) { return {1, image[1], 1, 1}; }

  std::int64_t stored(const Shape& shape, DataType type) {
    into_.tensor({.id = ++last_, .shape = shape, .type = type});
    return last_;
  }
  std::int64_t inner() {
    into_.tensor({.id = ++last_, .shape = g_.conv.x, .type = DataType::f32, .inner = true});
    return last_;
  }

  std::int64_t normalised(std::int64_t a, std::int64_t b) {
    const std::int64_t scaled = inner(), shifted = inner(), clipped = inner();
    into_.multiply(x_, a, scaled);
    into_.add(scaled, b, shifted);
    into_.relu(shifted, clipped);
    return clipped;
  }

  void convolution(std::int64_t image) {
    into_.convolution(
        {.direction = g_.conv.direction, .window = g_.conv.window, .x = image, .w = w_, .y = y_});
  }

  void backward_through_norm() {
    const Shape channels = vector(g_.conv.x);
    const auto next = [&] { return stored(channels, DataType::f32); };
    OperationGraph::NormBackward norm{.x = x_};
    norm.mean = next();
    norm.inverse_deviation = next();
    norm.gamma = next();
    const std::int64_t beta = next();
    norm.dy = stored(g_.conv.x, g_.conv.type);
    norm.dgamma = next();
    norm.dbeta = next();
    norm.a = next();
    norm.b = next();
    norm.c = next();

    const std::int64_t gradient = inner();
    convolution(gradient);
    const std::int64_t centred = inner(), unit = inner(), scaled = inner(), shifted = inner();
    into_.subtract(x_, norm.mean, centred);
    into_.multiply(centred, norm.inverse_deviation, unit);
    into_.multiply(unit, norm.gamma, scaled);
    into_.add(scaled, beta, shifted);
    into_.relu_backward(gradient, shifted, norm.dy);
    into_.norm_backward(norm);
  }

  const FusedGraph& g_;
  OperationGraph& into_;
  std::int64_t last_ = 0, x_ = 0, w_ = 0, y_ = 0;
};

}  // namespace

std::string key_of(const FusedGraph& g) {
  return "fused " + key_of(g.conv) + (g.prologue ? " prologue" : "") +
         (g.statistics ? " statistics" : "") + (g.norm ? " norm" : "");
}

void build(const FusedGraph& graph, OperationGraph& into) { Builder(graph, into).run(); }

}  // namespace cnn::layers::cuda
