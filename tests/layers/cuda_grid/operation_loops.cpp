#include "tests/layers/cuda_grid/operation_loops.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <utility>
#include <variant>
#include <vector>

#include "layers/conv.h"
#include "runtime/error.h"
#include "tests/support/host_tensor.h"

namespace cnn::tests {
namespace {

using layers::ConvAttributes;
using layers::cuda::Direction;
using Graph = layers::cuda::OperationGraph;

class Loops {
 public:
  Loops(const Graph& graph, std::span<void* const> addresses) : graph_(graph) {
    const std::vector<Graph::Id> ids = graph.in_memory();
    check(ids.size() == addresses.size(), "a graph is run on another number of tensors");
    for (std::size_t i = 0; i < ids.size(); ++i) {
      addresses_[ids[i]] = static_cast<std::byte*>(addresses[i]);
    }
  }

  void operator()(const Graph::Convolution& c) {
    const Shape x = graph_.tensor(c.x).shape, w = graph_.tensor(c.w).shape;
    const ConvAttributes a{.window = c.window, .depthwise = w[1] == 1 && x[1] > 1};
    switch (c.direction) {
      case Direction::forward:
        return compute(layers::Conv2d(a), {c.x, c.w}, c.y);
      case Direction::backward_data:
        return compute(layers::Conv2dBackwardData(a, x), {c.y, c.w}, c.x);
      case Direction::backward_weights:
        return compute(layers::Conv2dBackwardWeights(a, w), {c.x, c.y}, c.w);
    }
  }

  void operator()(const Graph::Elementwise& e) {
    const auto a = read(e.a).as<float>();
    const auto out = result_of(e.out).as<float>();
    for (std::size_t i = 0; i < out.size(); ++i) {
      const double b = e.b == 0 ? 0 : at(e.b, i, graph_.tensor(e.out).shape);
      out[i] = static_cast<float>(value(e.function, a[i], b));
    }
    write(e.out);
  }

  void operator()(const Graph::Statistics& s) {
    const auto x = read(s.x).as<float>();
    const auto sum = result_of(s.sum).as<float>(), squares = result_of(s.squares).as<float>();
    std::ranges::fill(sum, 0.0F);
    std::ranges::fill(squares, 0.0F);
    for (std::size_t i = 0; i < x.size(); ++i) {
      const std::size_t c = channel(i, graph_.tensor(s.x).shape);
      sum[c] += x[i];
      squares[c] += x[i] * x[i];
    }
    write(s.sum);
    write(s.squares);
  }

  void operator()(const Graph::NormBackward& n) {
    const Shape shape = graph_.tensor(n.x).shape;
    const auto x = read(n.x).as<float>(), dy = read(n.dy).as<float>();
    const auto mean = read(n.mean).as<float>(), r = read(n.inverse_deviation).as<float>();
    const auto gamma = read(n.gamma).as<float>();
    std::vector<double> dgamma(mean.size()), dbeta(mean.size());
    for (std::size_t i = 0; i < x.size(); ++i) {
      const std::size_t c = channel(i, shape);
      dbeta[c] += dy[i];
      dgamma[c] += dy[i] * (x[i] - mean[c]) * r[c];
    }
    const double count = static_cast<double>(x.size()) / static_cast<double>(mean.size());
    for (std::size_t c = 0; c < mean.size(); ++c) {
      const double a = gamma[c] * r[c], b = -a * r[c] * dgamma[c] / count;
      set(n.dgamma, c, dgamma[c]);
      set(n.dbeta, c, dbeta[c]);
      set(n.a, c, a);
      set(n.b, c, b);
      set(n.c, c, -b * mean[c] - a * dbeta[c] / count);
    }
    for (const Graph::Id id : {n.dgamma, n.dbeta, n.a, n.b, n.c}) {
      write(id);
    }
  }

 private:
  static double value(Graph::Function function, double a, double b) {
    switch (function) {
      case Graph::Function::add:
        return a + b;
      case Graph::Function::subtract:
        return a - b;
      case Graph::Function::multiply:
        return a * b;
      case Graph::Function::relu:
        return std::max(a, 0.0);
      case Graph::Function::relu_backward:
        return b < 0 ? 0 : a;
    }
    return 0;
  }

  static std::size_t channel(std::size_t element, const Shape& shape) {
    const auto pixels = static_cast<std::size_t>(shape[2] * shape[3]);
    return element / pixels % static_cast<std::size_t>(shape[1]);
  }

  // Returns element i of an image of that shape, or the channel's element of a vector.
  float at(Graph::Id id, std::size_t i, const Shape& shape) {
    const auto values = read(id).as<float>();
    return graph_.tensor(id).shape == shape ? values[i] : values[channel(i, shape)];
  }
  void set(Graph::Id id, std::size_t i, double value) {
    result_of(id).as<float>()[i] = static_cast<float>(value);
  }

  TensorDesc desc(Graph::Id id) const {
    const Graph::Tensor& tensor = graph_.tensor(id);
    return {
        .shape = tensor.shape, .type = tensor.type, .layout = Layout::nhwc, .pitch = tensor.pitch};
  }

  // Returns the tensor that an earlier operation made, or the one in memory.
  TensorView read(Graph::Id id) {
    const auto [value, is_new] = values_.try_emplace(id, plain(desc(id)));
    if (is_new) {
      check(addresses_.contains(id), "an inner tensor is read before it is made");
      unpack({desc(id), addresses_.at(id)}, value->second.view());
    }
    return value->second.view();
  }
  TensorView result_of(Graph::Id id) {
    return values_.try_emplace(id, plain(desc(id))).first->second.view();
  }
  void write(Graph::Id id) {
    if (addresses_.contains(id)) {
      pack(values_.at(id).view(), {desc(id), addresses_.at(id)});
    }
  }

  void compute(const Op& op, std::initializer_list<Graph::Id> in, Graph::Id out) {
    std::vector<TensorView> operands;
    for (const Graph::Id id : in) {
      operands.push_back(read(id));
    }
    const std::vector<TensorView> results{result_of(out)};
    op.reference(operands, results);
    write(out);
  }

  const Graph& graph_;
  std::map<Graph::Id, std::byte*> addresses_;
  std::map<Graph::Id, HostTensor> values_;  // in plain layout
};

}  // namespace

void run_by_loops(const Graph& graph, std::span<void* const> addresses) {
  Loops loops(graph, addresses);
  for (const Graph::Operation& operation : graph.operations()) {
    std::visit(loops, operation);
  }
}

}  // namespace cnn::tests
