#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <variant>
#include <vector>

#include "runtime/tensor.h"
#include "tests/support/cuda/dnn/object.h"

// A graph of operations, read back from its descriptors.
namespace cnn::tests::emulated::dnn {

using Id = std::int64_t;

struct Tensor {
  std::array<std::int64_t, 4> sizes{}, strides{};  // N, C, H, W
  DataType type{};
  std::int64_t alignment = 1;
  bool is_virtual = false;
  bool operator==(const Tensor&) const = default;

  std::int64_t elements() const;
  std::size_t extent() const;  // bytes from the first to behind the last element
};

struct Convolution {
  enum class Computes : std::uint8_t { y, x, w };
  Computes computes{};
  std::array<std::int64_t, 2> strides{}, before{}, after{};  // of rows and columns; paddings
  Id x = 0, w = 0, y = 0;
};
// out = a, b by the mode; relu has no b; relu_backward: a where b > 0, else 0.
struct Pointwise {
  cudnnPointwiseMode_t mode{};
  Id a = 0, b = 0, out = 0;
};
struct Statistics {
  Id x = 0, sum = 0, squares = 0;
};
struct NormBackward {
  Id x = 0, dy = 0, mean = 0, inverse_deviation = 0, scale = 0;
  Id dscale = 0, dbias = 0, dy_factor = 0, x_factor = 0, constant = 0;
};
using Operation = std::variant<Convolution, Pointwise, Statistics, NormBackward>;

struct Graph {
  std::map<Id, Tensor> tensors;
  std::vector<Operation> operations;
};

// Throws DnnError that names what is wrong: shapes, strides, identifiers, types, order.
Graph read_graph(const Object& graph);
Tensor read_tensor(const Object& tensor);
Operation read_operation(const Object& operation, std::map<Id, Tensor>& tensors);

// The tensors that an operation reads and writes.
std::vector<Id> inputs_of(const Operation& operation);
std::vector<Id> outputs_of(const Operation& operation);

}  // namespace cnn::tests::emulated::dnn
