#include "layers/cuda/operation_graph.h"

#include <string>

#include "layers/device_layout.h"
#include "runtime/error.h"

namespace cnn::layers::cuda {
namespace {

using Ids = std::vector<OperationGraph::Id>;

struct Named {
  Ids operator()(const OperationGraph::Convolution& c) const { return {c.x, c.w, c.y}; }
  Ids operator()(const OperationGraph::Elementwise& e) const {
    return e.function == OperationGraph::Function::relu ? Ids{e.a, e.out} : Ids{e.a, e.b, e.out};
  }
  Ids operator()(const OperationGraph::Statistics& s) const { return {s.x, s.sum, s.squares}; }
  Ids operator()(const OperationGraph::NormBackward& n) const {
    return {n.x, n.dy, n.mean, n.inverse_deviation, n.gamma, n.dgamma, n.dbeta, n.a, n.b, n.c};
  }
};

}  // namespace

OperationGraph::Id OperationGraph::stored(const Shape& shape, DataType type, std::int64_t pitch) {
  require_indexable({.shape = shape, .type = type, .layout = Layout::nhwc, .pitch = pitch});
  tensors_.push_back({.shape = shape, .type = type, .pitch = pitch});
  return static_cast<Id>(tensors_.size());
}

OperationGraph::Id OperationGraph::inner(const Shape& shape) {
  tensors_.push_back({.shape = shape, .inner = true});
  return static_cast<Id>(tensors_.size());
}

void OperationGraph::add(const Operation& operation) {
  for (const Id id : tensors_of(operation)) {
    static_cast<void>(tensor(id));
  }
  operations_.push_back(operation);
}

const OperationGraph::Tensor& OperationGraph::tensor(Id id) const {
  check(id > 0 && id <= static_cast<Id>(tensors_.size()),
        "a graph of operations has no tensor " + std::to_string(id));
  return tensors_[static_cast<std::size_t>(id) - 1];
}

std::vector<OperationGraph::Id> OperationGraph::in_memory() const {
  Ids ids;
  for (std::size_t i = 0; i < tensors_.size(); ++i) {
    if (!tensors_[i].inner) {
      ids.push_back(static_cast<Id>(i) + 1);
    }
  }
  return ids;
}

std::vector<OperationGraph::Id> tensors_of(const OperationGraph::Operation& operation) {
  return std::visit(Named{}, operation);
}

}  // namespace cnn::layers::cuda
