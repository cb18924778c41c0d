#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <variant>
#include <vector>

#include "runtime/tensor.h"
#include "tests/support/cuda/dnn/object.h"

// A graph of operations, read back from its cuDNN descriptors.
namespace cnn::tests::emulated::dnn {

using Id = std::int64_t;

struct Tensor {
  std::array<std::int64_t, 4> sizes{}, strides{};  // in the order N, C, H, W
  DataType type{};
  std::int64_t alignment = 1;
  bool is_virtual = false;
  bool operator==(const Tensor&) const = default;

  std::int64_t elements() const;
  std::size_t extent() const;  // bytes from the first element to the end of the last
};

struct Convolution {
  enum class Computes : std::uint8_t { y, x, w };
  Computes computes{};
  // Each for rows and columns; before and after are paddings.
  std::array<std::int64_t, 2> strides{}, before{}, after{};
  Id x = 0, w = 0, y = 0;
};
// Computes out from a and b by the mode. relu has no b; relu_backward gives 0 where b < 0 and
// otherwise a, as cuDNN's engines for data gradients with a norm do.
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

// Throws DnnError that names a wrong shape, stride, identifier, type or order.
Graph read_graph(const Object& graph);
Tensor read_tensor(const Object& tensor);
Operation read_operation(const Object& operation, std::map<Id, Tensor>& tensors);

// Return the tensors that an operation reads and writes.
std::vector<Id> inputs_of(const Operation& operation);
std::vector<Id> outputs_of(const Operation& operation);

}  // namespace cnn::tests::emulated::dnn
