#include "layers/cuda/fused_graph.h"

#include <utility>

namespace cnn::layers::cuda {
namespace {

using Id = OperationGraph::Id;
using Function = OperationGraph::Function;

// Builds the operation graph. Calls of stored() number the tensors in memory, so each call is a
// statement of its own: the order of evaluation of arguments is unspecified.
class Builder {
 public:
  explicit Builder(const FusedGraph& graph) : g_(graph) {}

  OperationGraph build() {
    const ConvGraph& conv = g_.conv;
    x_ = into_.stored(conv.x, conv.type);
    w_ = into_.stored(conv.w, conv.type);
    y_ = into_.stored(conv.y, conv.type);
    const Id image = g_.prologue ? normalised() : x_;
    if (g_.norm) {
      backward_through_norm();
    } else {
      convolution(image);
    }
    if (g_.statistics) {
      const Id sum = into_.stored(vector(conv.y), DataType::f32);
      const Id squares = into_.stored(vector(conv.y), DataType::f32);
      into_.add(OperationGraph::Statistics{.x = y_, .sum = sum, .squares = squares});
    }
    return std::move(into_);
  }

 private:
  static Shape vector(const Shape& image) { return {1, image[1], 1, 1}; }

  Id coefficient() { return into_.stored(vector(g_.conv.x), DataType::f32); }

  // Appends f(a, b) and returns its result, an intermediate value that is not stored.
  Id inner(Function function, Id a, Id b = 0) {
    const Id out = into_.inner(g_.conv.x);
    into_.add(OperationGraph::Elementwise{.function = function, .a = a, .b = b, .out = out});
    return out;
  }

  Id normalised() {
    const Id scale = into_.stored(vector(g_.conv.x), g_.conv.type);
    const Id shift = into_.stored(vector(g_.conv.x), g_.conv.type);
    const Id scaled = inner(Function::multiply, x_, scale);
    const Id shifted = inner(Function::add, scaled, shift);
    return inner(Function::relu, shifted);
  }

  void convolution(Id image) {
    into_.add(OperationGraph::Convolution{
        .direction = g_.conv.direction, .window = g_.conv.window, .x = image, .w = w_, .y = y_});
  }

  void backward_through_norm() {
    OperationGraph::NormBackward norm{.x = x_};
    norm.mean = coefficient();
    norm.inverse_deviation = coefficient();
    norm.gamma = coefficient();
    const Id beta = coefficient();
    norm.dy = into_.stored(g_.conv.x, g_.conv.type);
    norm.dgamma = coefficient();
    norm.dbeta = coefficient();
    norm.a = coefficient();
    norm.b = coefficient();
    norm.c = coefficient();

    const Id gradient = into_.inner(g_.conv.x);
    convolution(gradient);
    const Id centred = inner(Function::subtract, x_, norm.mean);
    const Id unit = inner(Function::multiply, centred, norm.inverse_deviation);
    const Id scaled = inner(Function::multiply, unit, norm.gamma);
    const Id shifted = inner(Function::add, scaled, beta);
    into_.add(OperationGraph::Elementwise{
        .function = Function::relu_backward, .a = gradient, .b = shifted, .out = norm.dy});
    into_.add(norm);
  }

  const FusedGraph& g_;
  OperationGraph into_;
  Id x_ = 0, w_ = 0, y_ = 0;
};

}  // namespace

std::string key_of(const FusedGraph& g) {
  return "fused " + key_of(g.conv) + (g.prologue ? " prologue" : "") +
         (g.statistics ? " statistics" : "") + (g.norm ? " norm" : "");
}

OperationGraph operations_of(const FusedGraph& graph) { return Builder(graph).build(); }

}  // namespace cnn::layers::cuda
