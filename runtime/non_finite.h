#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>

#include "runtime/device.h"
#include "runtime/program.h"
#include "runtime/tensor.h"
#include "runtime/variables.h"

// Finds the first NaN or infinity of a step.
namespace cnn {

// A tensor with elements that are NaN or infinite.
struct NonFiniteTensor {
  std::string name;
  std::string made_by;   // the node "conv2d#3"; empty: a variable or an input of the step
  std::string variable;  // the first variable that this node reads, or empty
  std::int64_t count = 0, elements = 0;  // include the layout's padding
};

// Returns "v/cg/conv0/biases (5 of 32 values)" or "the result of conv2d#3 with
// v/cg/conv0/conv2d/kernel (...)".
std::string to_string(const NonFiniteTensor& tensor);

// Returns the names of a tensor that an action of the step reads or writes; no counts.
NonFiniteTensor describe_non_finite(const Graph& graph, TensorId tensor, const Action& action);

// Returns the number of NaN or infinite elements of a tensor in host memory, padding included; 0
// for an integer tensor.
std::int64_t count_non_finite(const TensorView& tensor);

// Reads tensors of a device through a staging buffer. Nothing else may use the device meanwhile.
class NonFiniteReader {
 public:
  explicit NonFiniteReader(Device& device);

  // Returns the number of NaN or infinite elements of a tensor; 0 for an integer tensor.
  std::int64_t count(const TensorView& tensor);

 private:
  // `pieces` runs of `bytes` each, with starts `apart` bytes from one another.
  struct Runs {
    const std::byte* first = nullptr;
    std::size_t pieces = 1, bytes = 0, apart = 0;
  };
  std::int64_t count_in(const Runs& runs, DataType type);

  std::unique_ptr<Stream> stream_;
  Buffer chunk_;
};

// The memory in which a plan's step has run.
struct StepMemory {
  const StepPlan& plan;
  const Variables& variables;
  std::span<std::byte> arena;
};

// Returns the first non-finite tensor in the order of the plan, or nothing. Considers only tensors
// that still hold the step's values: variables that the step reads and does not change, and
// activations whose bytes no later tensor has taken.
std::optional<NonFiniteTensor> first_non_finite(const StepMemory& memory, NonFiniteReader& reader);

}  // namespace cnn
