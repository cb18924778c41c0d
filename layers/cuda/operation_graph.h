#pragma once

#include <cstdint>
#include <span>
#include <variant>
#include <vector>

#include "layers/window.h"
#include "runtime/tensor.h"

namespace cnn::layers::cuda {

// The direction of a convolution: whether it computes y, x or w.
enum class Direction : std::uint8_t { forward, backward_data, backward_weights };

// A fused operation graph as data, which a library runs as one kernel: operations on tensors in
// nhwc, in topological order. Tensors are numbered from 1 on in the order in which they were added;
// 0 means none.
class OperationGraph {
 public:
  using Id = std::int64_t;

  struct Tensor {
    Shape shape;  // N, C, H, W
    DataType type = DataType::f32;
    bool inner = false;      // an intermediate value, never in memory
    std::int64_t pitch = 0;  // elements between pixels, where that is more than C
    bool operator==(const Tensor&) const = default;
  };

  // x, w and y as in the forward convolution; sums in f32. Grouped if w has fewer channels than x.
  struct Convolution {
    Direction direction{};
    Window window;
    Id x = 0, w = 0, y = 0;
    bool operator==(const Convolution&) const = default;
  };
  // relu_backward: out = 0 where b < 0, else a. relu has no b. b may be [1, C, 1, 1].
  enum class Function : std::uint8_t { add, subtract, multiply, relu, relu_backward };
  struct Elementwise {
    Function function{};
    Id a = 0, b = 0, out = 0;
    bool operator==(const Elementwise&) const = default;
  };
  // Sums of x and x^2 over all axes but channels: sum and squares, f32 [1, C, 1, 1].
  struct Statistics {
    Id x = 0, sum = 0, squares = 0;
    bool operator==(const Statistics&) const = default;
  };
  // The operands that a batch norm's gradient needs of its sums; all but x and dy are [1, C, 1, 1],
  // f32. d loss / d x = a dy + b x + c.
  struct NormBackward {
    Id x = 0, dy = 0, mean = 0, inverse_deviation = 0, gamma = 0;
    Id dgamma = 0, dbeta = 0, a = 0, b = 0, c = 0;
    bool operator==(const NormBackward&) const = default;
  };
  using Operation = std::variant<Convolution, Elementwise, Statistics, NormBackward>;

  // Adds a tensor in memory and returns its number. Throws Error if it has more elements than an
  // engine can index, see require_indexable().
  Id stored(const Shape& shape, DataType type, std::int64_t pitch = 0);
  // Adds an intermediate f32 value, which is never in memory, and returns its number.
  Id inner(const Shape& shape);
  // Appends an operation. Throws Error if it names a tensor that does not exist.
  void add(const Operation& operation);

  std::span<const Tensor> tensors() const { return tensors_; }
  std::span<const Operation> operations() const { return operations_; }
  const Tensor& tensor(Id id) const;  // throws Error if there is none
  // Returns the tensors in memory; addresses are passed in this order.
  std::vector<Id> in_memory() const;

 private:
  std::vector<Tensor> tensors_;
  std::vector<Operation> operations_;
};

// Returns the numbers of the tensors that an operation reads and writes, in the order of its
// members.
std::vector<OperationGraph::Id> tensors_of(const OperationGraph::Operation& operation);

}  // namespace cnn::layers::cuda
