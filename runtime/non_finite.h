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

// Finds where NaN or infinity came into a step.
namespace cnn {

// A tensor with elements that are NaN or infinite.
struct NonFiniteTensor {
  std::string name;
  std::string made_by;  // the node "conv2d#3", or empty: a variable, or an input of the step
  std::string of;       // the first variable that this node reads, or empty
  std::int64_t count = 0, elements = 0;  // with the layout's padding
};

// "v/cg/conv0/biases (5 of 32 values)", "the result of conv2d#3 with v/cg/conv0/conv2d/kernel
// (...)".
std::string to_string(const NonFiniteTensor& tensor);

// Returns what is known of a tensor that an action of the step reads or makes; no counts.
NonFiniteTensor describe_non_finite(const Graph& graph, TensorId tensor, const Action& action);

// The elements of a tensor in host memory that are NaN or infinite, with the layout's padding; 0
// for one of whole numbers.
std::int64_t count_non_finite(const TensorView& tensor);

// Reads tensors of a device, which nothing else may use meanwhile, through memory of its own.
class NonFiniteReader {
 public:
  explicit NonFiniteReader(Device& device);

  // The elements of a tensor that are NaN or infinite; 0 for one of whole numbers.
  std::int64_t count(const TensorView& tensor);

 private:
  // Looks at `pieces` runs of `bytes`, each `apart` from the one before.
  struct Runs {
    const std::byte* first = nullptr;
    std::size_t pieces = 1, bytes = 0, apart = 0;
  };
  std::int64_t count_in(const Runs& runs, DataType type);

  std::unique_ptr<Stream> stream_;
  Buffer chunk_;
};

// Where the step of a plan has run.
struct StepMemory {
  const StepPlan& plan;
  const Variables& variables;
  std::span<std::byte> arena;
};

// Returns the first tensor, in the order of the plan, that is not finite, of those which still have
// the values that the step worked on: variables which it reads and does not change, and activations
// whose bytes no later tensor has taken. Nothing: all of these are finite.
std::optional<NonFiniteTensor> first_non_finite(const StepMemory& memory, NonFiniteReader& reader);

}  // namespace cnn
