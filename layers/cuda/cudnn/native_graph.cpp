#include "layers/cuda/cudnn/native_graph.h"

#include <algorithm>
#include <array>
#include <initializer_list>
#include <iterator>
#include <span>
#include <string>
#include <utility>
#include <variant>

namespace cnn::layers::cuda {
namespace {

using Id = OperationGraph::Id;
using Name = cudnnBackendAttributeName_t;

cudnnDataType_t cudnn_type(DataType type) {
  switch (type) {
    case DataType::f16:
      return CUDNN_DATA_HALF;
    case DataType::bf16:
      return CUDNN_DATA_BFLOAT16;
    case DataType::i32:
      return CUDNN_DATA_INT32;
    case DataType::u8:
      return CUDNN_DATA_UINT8;
    case DataType::f32:
      break;
  }
  return CUDNN_DATA_FLOAT;
}

Descriptor tensor_descriptor(const OperationGraph::Tensor& tensor, Id id) {
  const Shape& s = tensor.shape;
  const std::int64_t pitch = tensor.pitch > 0 ? tensor.pitch : s[1];
  const std::array<std::int64_t, 4> strides{pitch * s[2] * s[3], 1, pitch * s[3], pitch};
  Descriptor descriptor(CUDNN_BACKEND_TENSOR_DESCRIPTOR);
  descriptor.set(CUDNN_ATTR_TENSOR_DATA_TYPE, cudnn_type(tensor.type));
  descriptor.set(CUDNN_ATTR_TENSOR_DIMENSIONS, std::span<const std::int64_t>(s.begin(), s.end()));
  descriptor.set(CUDNN_ATTR_TENSOR_STRIDES, std::span<const std::int64_t>(strides));
  descriptor.set(CUDNN_ATTR_TENSOR_UNIQUE_ID, id);
  // Blocks of the memory plan are aligned to 64 bytes, but images inside a concatenation only to
  // 16, the widest access of a thread.
  descriptor.set(CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT, std::int64_t{16});
  descriptor.set(CUDNN_ATTR_TENSOR_IS_VIRTUAL, tensor.inner);
  descriptor.finalize("a tensor " + to_string(s));
  return descriptor;
}

// The names of a convolution operation's attributes, which depend on the direction.
struct ConvolutionNames {
  cudnnBackendDescriptorType_t type;
  Name window, x, w, y, alpha, beta;
};

ConvolutionNames names_of(Direction direction) {
  switch (direction) {
    case Direction::backward_data:
      return {CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_CONV_DESC,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DX,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_W,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DY,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_ALPHA,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_BETA};
    case Direction::backward_weights:
      return {CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_FILTER_DESCRIPTOR,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_CONV_DESC,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_X,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DW,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DY,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_ALPHA,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_BETA};
    case Direction::forward:
      break;
  }
  return {CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR,
          CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_CONV_DESC,
          CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_X,
          CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_W,
          CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_Y,
          CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_ALPHA,
          CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_BETA};
}

using Pair = std::array<std::int64_t, 2>;

void set_pair(Descriptor& to, Name name, const Pair& pair) {
  to.set(name, std::span<const std::int64_t>(pair));
}

Descriptor window_descriptor(const Window& w) {
  Descriptor result(CUDNN_BACKEND_CONVOLUTION_DESCRIPTOR);
  result.set(CUDNN_ATTR_CONVOLUTION_COMP_TYPE, CUDNN_DATA_FLOAT);
  result.set(CUDNN_ATTR_CONVOLUTION_CONV_MODE, CUDNN_CROSS_CORRELATION);
  result.set(CUDNN_ATTR_CONVOLUTION_SPATIAL_DIMS, std::int64_t{2});
  set_pair(result, CUDNN_ATTR_CONVOLUTION_DILATIONS, {1, 1});
  set_pair(result, CUDNN_ATTR_CONVOLUTION_FILTER_STRIDES, {w.stride_h, w.stride_w});
  set_pair(result, CUDNN_ATTR_CONVOLUTION_PRE_PADDINGS, {w.pad_top, w.pad_left});
  set_pair(result, CUDNN_ATTR_CONVOLUTION_POST_PADDINGS, {w.pad_bottom, w.pad_right});
  result.finalize("a convolution");
  return result;
}

cudnnPointwiseMode_t mode_of(OperationGraph::Function function) {
  switch (function) {
    case OperationGraph::Function::add:
      return CUDNN_POINTWISE_ADD;
    case OperationGraph::Function::subtract:
      return CUDNN_POINTWISE_SUB;
    case OperationGraph::Function::multiply:
      return CUDNN_POINTWISE_MUL;
    case OperationGraph::Function::relu:
      return CUDNN_POINTWISE_RELU_FWD;
    case OperationGraph::Function::relu_backward:
      break;
  }
  return CUDNN_POINTWISE_RELU_BWD;
}

Descriptor function_descriptor(OperationGraph::Function function) {
  Descriptor kind(CUDNN_BACKEND_POINTWISE_DESCRIPTOR);
  kind.set(CUDNN_ATTR_POINTWISE_MODE, mode_of(function));
  kind.set(CUDNN_ATTR_POINTWISE_MATH_PREC, CUDNN_DATA_FLOAT);
  kind.finalize("an element-wise operation");
  return kind;
}

// Creates the descriptor of each operation; `parts` receives the descriptors that it references.
class Operations {
 public:
  Operations(std::span<const Descriptor> tensors, std::vector<Descriptor>& parts)
      : tensors_(tensors), parts_(parts) {}

  Descriptor operator()(const OperationGraph::Convolution& c) {
    const ConvolutionNames names = names_of(c.direction);
    Descriptor operation(names.type);
    set(operation, {{names.x, c.x}, {names.w, c.w}, {names.y, c.y}});
    operation.set(names.window, parts_.emplace_back(window_descriptor(c.window)));
    operation.set(names.alpha, 1.0F);
    operation.set(names.beta, 0.0F);
    operation.finalize("a convolution's operands");
    return operation;
  }

  Descriptor operator()(const OperationGraph::Elementwise& e) {
    Descriptor operation(CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR);
    operation.set(CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR,
                  parts_.emplace_back(function_descriptor(e.function)));
    switch (e.function) {
      case OperationGraph::Function::relu:
        set(operation, {{CUDNN_ATTR_OPERATION_POINTWISE_XDESC, e.a},
                        {CUDNN_ATTR_OPERATION_POINTWISE_YDESC, e.out}});
        break;
      case OperationGraph::Function::relu_backward:
        set(operation, {{CUDNN_ATTR_OPERATION_POINTWISE_DYDESC, e.a},
                        {CUDNN_ATTR_OPERATION_POINTWISE_XDESC, e.b},
                        {CUDNN_ATTR_OPERATION_POINTWISE_DXDESC, e.out}});
        break;
      default:
        set(operation, {{CUDNN_ATTR_OPERATION_POINTWISE_XDESC, e.a},
                        {CUDNN_ATTR_OPERATION_POINTWISE_BDESC, e.b},
                        {CUDNN_ATTR_OPERATION_POINTWISE_YDESC, e.out}});
    }
    operation.finalize("an element-wise operation's operands");
    return operation;
  }

  Descriptor operator()(const OperationGraph::Statistics& s) {
    Descriptor operation(CUDNN_BACKEND_OPERATION_GEN_STATS_DESCRIPTOR);
    operation.set(CUDNN_ATTR_OPERATION_GENSTATS_MODE, CUDNN_GENSTATS_SUM_SQSUM);
    operation.set(CUDNN_ATTR_OPERATION_GENSTATS_MATH_PREC, CUDNN_DATA_FLOAT);
    set(operation, {{CUDNN_ATTR_OPERATION_GENSTATS_XDESC, s.x},
                    {CUDNN_ATTR_OPERATION_GENSTATS_SUMDESC, s.sum},
                    {CUDNN_ATTR_OPERATION_GENSTATS_SQSUMDESC, s.squares}});
    operation.finalize("sums over channels");
    return operation;
  }

  Descriptor operator()(const OperationGraph::NormBackward& n) {
    Descriptor operation(CUDNN_BACKEND_OPERATION_BN_BWD_WEIGHTS_DESCRIPTOR);
    operation.set(CUDNN_ATTR_OPERATION_BN_BWD_WEIGHTS_MATH_PREC, CUDNN_DATA_FLOAT);
    set(operation, {{CUDNN_ATTR_OPERATION_BN_BWD_WEIGHTS_MEAN_DESC, n.mean},
                    {CUDNN_ATTR_OPERATION_BN_BWD_WEIGHTS_INVSTD_DESC, n.inverse_deviation},
                    {CUDNN_ATTR_OPERATION_BN_BWD_WEIGHTS_BN_SCALE_DESC, n.gamma},
                    {CUDNN_ATTR_OPERATION_BN_BWD_WEIGHTS_X_DESC, n.x},
                    {CUDNN_ATTR_OPERATION_BN_BWD_WEIGHTS_DY_DESC, n.dy},
                    {CUDNN_ATTR_OPERATION_BN_BWD_WEIGHTS_DBN_SCALE_DESC, n.dgamma},
                    {CUDNN_ATTR_OPERATION_BN_BWD_WEIGHTS_DBN_BIAS_DESC, n.dbeta},
                    {CUDNN_ATTR_OPERATION_BN_BWD_WEIGHTS_EQ_DY_SCALE_DESC, n.a},
                    {CUDNN_ATTR_OPERATION_BN_BWD_WEIGHTS_EQ_X_SCALE_DESC, n.b},
                    {CUDNN_ATTR_OPERATION_BN_BWD_WEIGHTS_EQ_BIAS, n.c}});
    operation.finalize("sums of a batch norm's gradient");
    return operation;
  }

 private:
  struct Operand {
    Name name{};
    Id tensor = 0;
  };
  void set(Descriptor& operation, std::initializer_list<Operand> operands) const {
    for (const Operand& operand : operands) {
      operation.set(operand.name, tensors_[static_cast<std::size_t>(operand.tensor) - 1]);
    }
  }

  std::span<const Descriptor> tensors_;
  std::vector<Descriptor>& parts_;
};

}  // namespace

NativeGraph::NativeGraph(const OperationGraph& graph, const Target& target)
    : source_(graph), target_(target), graph_(CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR) {
  std::vector<Descriptor> tensors;
  for (const OperationGraph::Tensor& tensor : graph.tensors()) {
    tensors.push_back(tensor_descriptor(tensor, static_cast<Id>(tensors.size()) + 1));
  }
  Operations make(tensors, parts_);
  std::vector<Descriptor> operations;
  for (const OperationGraph::Operation& operation : graph.operations()) {
    operations.push_back(std::visit(make, operation));
  }
  graph_.set(CUDNN_ATTR_OPERATIONGRAPH_OPS, std::span<const Descriptor>(operations));
  if (target.is_live()) {
    graph_.set(CUDNN_ATTR_OPERATIONGRAPH_HANDLE, target.handle());
  }
  graph_.finalize("a graph of operations");
  std::ranges::move(tensors, std::back_inserter(parts_));
  std::ranges::move(operations, std::back_inserter(parts_));
}

}  // namespace cnn::layers::cuda
