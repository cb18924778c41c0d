#include "bench/session/bit_flip.h"

#include <algorithm>
#include <fmt/format.h>
#include <vector>

#include "runtime/error.h"
#include "runtime/memory_plan.h"

namespace cnn::bench {
namespace {

bool holds_real_numbers(const WrittenTensor& tensor) {
  const DataType type = tensor.desc.type;
  return !tensor.in_place && tensor.desc.shape.elements() > 0 && type != DataType::i32 &&
         type != DataType::u8;
}

// Returns the tensor that the fault names, or an output in the middle of the step.
const WrittenTensor& choose(const FaultSpec& fault, const WrittenTensors& tensors) {
  if (!fault.tensor.empty()) {
    const WrittenTensor& named = tensors.all()[tensors.find(fault.tensor)];
    check(named.desc.shape.elements() > 0, fmt::format("tensor {} is empty", fault.tensor));
    return named;
  }
  std::vector<const WrittenTensor*> candidates;
  for (const WrittenTensor& tensor : tensors.all()) {
    if (holds_real_numbers(tensor)) {
      candidates.push_back(&tensor);
    }
  }
  check(!candidates.empty(), "the step has no tensor of real numbers");
  return *candidates[candidates.size() / 2];
}

}  // namespace

BitFlip::BitFlip(const FaultSpec& fault, const WrittenTensors& tensors, Device& device)
    : step_(fault.step), tensor_(choose(fault, tensors)), byte_(device.allocate_host(alignment)) {}

// The first byte of a tensor belongs to its first element in every layout; a copy to the host and
// back reaches it on any device.
void BitFlip::enqueued(NodeId node, const Operands& operands, Lane /*lane*/, Stream& stream) {
  constexpr std::byte bit{0x10};
  if (!due_ || node != tensor_.node) {
    return;
  }
  due_ = false;  // a recomputation computes the right value
  std::byte* const there = tensor_.view(operands).data;
  stream.copy(byte_.data(), there, 1);
  stream.host([byte = byte_.data()] { *byte ^= bit; });
  stream.copy(there, byte_.data(), 1);
}

}  // namespace cnn::bench
