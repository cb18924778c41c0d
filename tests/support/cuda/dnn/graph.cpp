#include "tests/support/cuda/dnn/graph.h"

#include <algorithm>
#include <set>
#include <utility>

namespace cnn::tests::emulated::dnn {
namespace {

using Name = cudnnBackendAttributeName_t;

DataType type_of(cudnnDataType_t type) {
  switch (type) {
    case CUDNN_DATA_FLOAT:
      return DataType::f32;
    case CUDNN_DATA_HALF:
      return DataType::f16;
    case CUDNN_DATA_BFLOAT16:
      return DataType::bf16;
    default:
      throw DnnError(CUDNN_STATUS_NOT_SUPPORTED_DATA_TYPE,
                     "data type " + std::to_string(type) + " is not emulated");
  }
}

// Returns whether no two elements share an address.
bool is_injective(const Tensor& t) {
  std::vector<std::pair<std::int64_t, std::int64_t>> order;  // pairs of stride and size
  for (std::size_t d = 0; d < 4; ++d) {
    if (t.sizes[d] > 1) {
      order.emplace_back(t.strides[d], t.sizes[d]);
    }
  }
  std::ranges::sort(order);
  std::int64_t least = 1;
  return std::ranges::all_of(order, [&](const auto& dimension) {
    const bool fits = dimension.first >= least;
    least = dimension.first * dimension.second;
    return fits;
  });
}

void require_f32(const Reader& reader, Name name) {
  require(reader.one<cudnnDataType_t>(name) == CUDNN_DATA_FLOAT,
          "sums and functions are emulated in f32 only", CUDNN_STATUS_NOT_SUPPORTED_DATA_TYPE);
}

// Adds the tensors that an operation names, by their identifiers.
class Operands {
 public:
  Operands(const Object& operation, std::map<Id, Tensor>& tensors)
      : reader_(operation), tensors_(tensors) {}

  Id operator()(Name name) {
    const auto object = reader_.object(name, CUDNN_BACKEND_TENSOR_DESCRIPTOR);
    const Id id = Reader(*object).one<std::int64_t>(CUDNN_ATTR_TENSOR_UNIQUE_ID);
    const Tensor tensor = read_tensor(*object);
    const auto [known, is_new] = tensors_.try_emplace(id, tensor);
    require(is_new || known->second == tensor,
            "two different tensors have the identifier " + std::to_string(id),
            CUDNN_STATUS_BAD_PARAM_DUPLICATED_ENTRIES);
    return id;
  }
  const Tensor& at(Id id) const { return tensors_.at(id); }
  const Reader& reader() const { return reader_; }

 private:
  Reader reader_;
  std::map<Id, Tensor>& tensors_;
};

std::array<std::int64_t, 2> pair(const Reader& window, Name name) {
  const auto values = window.all<std::int64_t>(name);
  require(values.size() == 2, "a convolution has " + std::to_string(values.size()) +
                                  " values for attribute " + std::to_string(name) + ", not 2");
  return {values[0], values[1]};
}

void read_window(const Object& object, Convolution& c) {
  const Reader window(object);
  require_f32(window, CUDNN_ATTR_CONVOLUTION_COMP_TYPE);
  require(window.one<std::int64_t>(CUDNN_ATTR_CONVOLUTION_SPATIAL_DIMS) == 2 &&
              window.one<cudnnConvolutionMode_t>(CUDNN_ATTR_CONVOLUTION_CONV_MODE) ==
                  CUDNN_CROSS_CORRELATION,
          "only cross-correlations in two dimensions are emulated", CUDNN_STATUS_NOT_SUPPORTED);
  const auto dilations = pair(window, CUDNN_ATTR_CONVOLUTION_DILATIONS);
  require(dilations[0] == 1 && dilations[1] == 1, "dilations are not emulated",
          CUDNN_STATUS_NOT_SUPPORTED);
  c.strides = pair(window, CUDNN_ATTR_CONVOLUTION_FILTER_STRIDES);
  c.before = pair(window, CUDNN_ATTR_CONVOLUTION_PRE_PADDINGS);
  c.after = pair(window, CUDNN_ATTR_CONVOLUTION_POST_PADDINGS);
}

void check_shapes(const Convolution& c, const Operands& operands) {
  const auto x = operands.at(c.x).sizes, w = operands.at(c.w).sizes, y = operands.at(c.y).sizes;
  require(x[0] == y[0] && w[0] == y[1] && w[1] > 0 && x[1] % w[1] == 0 && y[1] % (x[1] / w[1]) == 0,
          "the images and channels of a convolution do not fit each other",
          CUDNN_STATUS_BAD_PARAM_SHAPE_MISMATCH);
  for (std::size_t d = 0; d < 2; ++d) {
    const std::int64_t covered = x[d + 2] + c.before[d] + c.after[d] - w[d + 2];
    require(c.strides[d] > 0 && covered >= 0 && covered / c.strides[d] + 1 == y[d + 2],
            "the output of a convolution has size " + std::to_string(y[d + 2]) + ", not " +
                std::to_string(covered / std::max<std::int64_t>(c.strides[d], 1) + 1),
            CUDNN_STATUS_BAD_PARAM_SHAPE_MISMATCH);
  }
}

struct ConvolutionNames {
  Name window, x, w, y, alpha, beta;
};

Operation read_convolution(Operands& operands, Convolution::Computes computes,
                           const ConvolutionNames& names) {
  Convolution c{.computes = computes};
  c.x = operands(names.x);
  c.w = operands(names.w);
  c.y = operands(names.y);
  read_window(*operands.reader().object(names.window, CUDNN_BACKEND_CONVOLUTION_DESCRIPTOR), c);
  require(operands.reader().one<float>(names.alpha) == 1 &&
              operands.reader().one<float>(names.beta) == 0,
          "convolutions are emulated with alpha 1 and beta 0", CUDNN_STATUS_NOT_SUPPORTED);
  check_shapes(c, operands);
  return c;
}

// Returns whether `b` broadcasts to the shape of `a`.
bool spreads_over(const Tensor& b, const Tensor& a) {
  for (std::size_t d = 0; d < 4; ++d) {
    if (b.sizes[d] != a.sizes[d] && b.sizes[d] != 1) {
      return false;
    }
  }
  return true;
}

Operation read_pointwise(Operands& operands) {
  const auto function = operands.reader().object(CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR,
                                                 CUDNN_BACKEND_POINTWISE_DESCRIPTOR);
  require_f32(Reader(*function), CUDNN_ATTR_POINTWISE_MATH_PREC);
  Pointwise p{.mode = Reader(*function).one<cudnnPointwiseMode_t>(CUDNN_ATTR_POINTWISE_MODE)};
  switch (p.mode) {
    case CUDNN_POINTWISE_RELU_FWD:
      p.a = operands(CUDNN_ATTR_OPERATION_POINTWISE_XDESC);
      p.out = operands(CUDNN_ATTR_OPERATION_POINTWISE_YDESC);
      break;
    case CUDNN_POINTWISE_RELU_BWD:
      p.a = operands(CUDNN_ATTR_OPERATION_POINTWISE_DYDESC);
      p.b = operands(CUDNN_ATTR_OPERATION_POINTWISE_XDESC);
      p.out = operands(CUDNN_ATTR_OPERATION_POINTWISE_DXDESC);
      break;
    case CUDNN_POINTWISE_ADD:
    case CUDNN_POINTWISE_SUB:
    case CUDNN_POINTWISE_MUL:
      p.a = operands(CUDNN_ATTR_OPERATION_POINTWISE_XDESC);
      p.b = operands(CUDNN_ATTR_OPERATION_POINTWISE_BDESC);
      p.out = operands(CUDNN_ATTR_OPERATION_POINTWISE_YDESC);
      break;
    default:
      throw DnnError(CUDNN_STATUS_NOT_SUPPORTED,
                     "element-wise mode " + std::to_string(p.mode) + " is not emulated");
  }
  require(operands.at(p.a).sizes == operands.at(p.out).sizes &&
              (p.b == 0 || spreads_over(operands.at(p.b), operands.at(p.a))),
          "the shapes of an element-wise operation do not fit each other",
          CUDNN_STATUS_BAD_PARAM_SHAPE_MISMATCH);
  return p;
}

Operation read_statistics(Operands& operands) {
  require(operands.reader().one<cudnnGenStatsMode_t>(CUDNN_ATTR_OPERATION_GENSTATS_MODE) ==
              CUDNN_GENSTATS_SUM_SQSUM,
          "statistics of another mode are not emulated", CUDNN_STATUS_NOT_SUPPORTED);
  require_f32(operands.reader(), CUDNN_ATTR_OPERATION_GENSTATS_MATH_PREC);
  return Statistics{.x = operands(CUDNN_ATTR_OPERATION_GENSTATS_XDESC),
                    .sum = operands(CUDNN_ATTR_OPERATION_GENSTATS_SUMDESC),
                    .squares = operands(CUDNN_ATTR_OPERATION_GENSTATS_SQSUMDESC)};
}

Operation read_norm(Operands& operands) {
  require_f32(operands.reader(), CUDNN_ATTR_OPERATION_BN_BWD_WEIGHTS_MATH_PREC);
  return NormBackward{
      .x = operands(CUDNN_ATTR_OPERATION_BN_BWD_WEIGHTS_X_DESC),
      .dy = operands(CUDNN_ATTR_OPERATION_BN_BWD_WEIGHTS_DY_DESC),
      .mean = operands(CUDNN_ATTR_OPERATION_BN_BWD_WEIGHTS_MEAN_DESC),
      .inverse_deviation = operands(CUDNN_ATTR_OPERATION_BN_BWD_WEIGHTS_INVSTD_DESC),
      .scale = operands(CUDNN_ATTR_OPERATION_BN_BWD_WEIGHTS_BN_SCALE_DESC),
      .dscale = operands(CUDNN_ATTR_OPERATION_BN_BWD_WEIGHTS_DBN_SCALE_DESC),
      .dbias = operands(CUDNN_ATTR_OPERATION_BN_BWD_WEIGHTS_DBN_BIAS_DESC),
      .dy_factor = operands(CUDNN_ATTR_OPERATION_BN_BWD_WEIGHTS_EQ_DY_SCALE_DESC),
      .x_factor = operands(CUDNN_ATTR_OPERATION_BN_BWD_WEIGHTS_EQ_X_SCALE_DESC),
      .constant = operands(CUDNN_ATTR_OPERATION_BN_BWD_WEIGHTS_EQ_BIAS)};
}

// Checks that each virtual tensor is written once and read only after that.
void check_order(const Graph& graph) {
  std::set<Id> made;
  for (const Operation& operation : graph.operations) {
    for (const Id id : inputs_of(operation)) {
      require(!graph.tensors.at(id).is_virtual || made.contains(id),
              "the virtual tensor " + std::to_string(id) + " is read before it is made",
              CUDNN_STATUS_BAD_PARAM);
    }
    for (const Id id : outputs_of(operation)) {
      require(made.insert(id).second, "tensor " + std::to_string(id) + " is made twice");
    }
  }
}

}  // namespace

std::int64_t Tensor::elements() const { return sizes[0] * sizes[1] * sizes[2] * sizes[3]; }

std::size_t Tensor::extent() const {
  std::int64_t last = 0;
  for (std::size_t d = 0; d < 4; ++d) {
    last += (sizes[d] - 1) * strides[d];
  }
  return static_cast<std::size_t>(last + 1) * (type == DataType::f32 ? 4 : 2);
}

Tensor read_tensor(const Object& object) {
  const Reader reader(object);
  Tensor tensor;
  const auto sizes = reader.all<std::int64_t>(CUDNN_ATTR_TENSOR_DIMENSIONS);
  const auto strides = reader.all<std::int64_t>(CUDNN_ATTR_TENSOR_STRIDES);
  require(sizes.size() == 4 && strides.size() == 4, "only tensors of four dimensions are emulated",
          CUDNN_STATUS_NOT_SUPPORTED_SHAPE);
  std::ranges::copy(sizes, tensor.sizes.begin());
  std::ranges::copy(strides, tensor.strides.begin());
  require(std::ranges::all_of(sizes, [](std::int64_t size) { return size > 0; }),
          "a tensor has no elements", CUDNN_STATUS_BAD_PARAM_OUT_OF_BOUND);
  require(is_injective(tensor), "the strides of a tensor let two elements share an address");
  tensor.type = type_of(reader.one<cudnnDataType_t>(CUDNN_ATTR_TENSOR_DATA_TYPE));
  tensor.alignment = reader.one<std::int64_t>(CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT);
  require(tensor.alignment > 0 && tensor.alignment % 2 == 0, "a tensor has no alignment");
  tensor.is_virtual = reader.has(CUDNN_ATTR_TENSOR_IS_VIRTUAL) &&
                      reader.one<std::uint8_t>(CUDNN_ATTR_TENSOR_IS_VIRTUAL) != 0;
  return tensor;
}

Operation read_operation(const Object& object, std::map<Id, Tensor>& tensors) {
  Operands operands(object, tensors);
  switch (object.type) {
    case CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR:
      return read_convolution(
          operands, Convolution::Computes::y,
          {CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_CONV_DESC,
           CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_X, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_W,
           CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_Y,
           CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_ALPHA,
           CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_BETA});
    case CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR:
      return read_convolution(operands, Convolution::Computes::x,
                              {CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_CONV_DESC,
                               CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DX,
                               CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_W,
                               CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DY,
                               CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_ALPHA,
                               CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_BETA});
    case CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_FILTER_DESCRIPTOR:
      return read_convolution(operands, Convolution::Computes::w,
                              {CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_CONV_DESC,
                               CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_X,
                               CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DW,
                               CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DY,
                               CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_ALPHA,
                               CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_BETA});
    case CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR:
      return read_pointwise(operands);
    case CUDNN_BACKEND_OPERATION_GEN_STATS_DESCRIPTOR:
      return read_statistics(operands);
    case CUDNN_BACKEND_OPERATION_BN_BWD_WEIGHTS_DESCRIPTOR:
      return read_norm(operands);
    default:
      throw DnnError(CUDNN_STATUS_BAD_PARAM_DESCRIPTOR_TYPE,
                     name_of(object.type) + " is no operation that is emulated");
  }
}

Graph read_graph(const Object& object) {
  Graph graph;
  for (const auto& operation : Reader(object).objects(CUDNN_ATTR_OPERATIONGRAPH_OPS)) {
    graph.operations.push_back(read_operation(*operation, graph.tensors));
  }
  check_order(graph);
  return graph;
}

std::vector<Id> inputs_of(const Operation& operation) {
  if (const auto* c = std::get_if<Convolution>(&operation)) {
    switch (c->computes) {
      case Convolution::Computes::y:
        return {c->x, c->w};
      case Convolution::Computes::x:
        return {c->y, c->w};
      case Convolution::Computes::w:
        return {c->x, c->y};
    }
  }
  if (const auto* p = std::get_if<Pointwise>(&operation)) {
    return p->b == 0 ? std::vector{p->a} : std::vector{p->a, p->b};
  }
  if (const auto* s = std::get_if<Statistics>(&operation)) {
    return {s->x};
  }
  const auto& n = std::get<NormBackward>(operation);
  return {n.x, n.dy, n.mean, n.inverse_deviation, n.scale};
}

std::vector<Id> outputs_of(const Operation& operation) {
  if (const auto* c = std::get_if<Convolution>(&operation)) {
    switch (c->computes) {
      case Convolution::Computes::y:
        return {c->y};
      case Convolution::Computes::x:
        return {c->x};
      case Convolution::Computes::w:
        return {c->w};
    }
  }
  if (const auto* p = std::get_if<Pointwise>(&operation)) {
    return {p->out};
  }
  if (const auto* s = std::get_if<Statistics>(&operation)) {
    return {s->sum, s->squares};
  }
  const auto& n = std::get<NormBackward>(operation);
  return {n.dscale, n.dbias, n.dy_factor, n.x_factor, n.constant};
}

}  // namespace cnn::tests::emulated::dnn
