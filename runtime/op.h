#pragma once

#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "runtime/device.h"
#include "runtime/tensor.h"

namespace cnn {

class Graph;

// The value that models pass around: a tensor of a graph under construction. Cheap to copy.
struct Value {
  Graph* graph = nullptr;
  TensorId id{};

  const TensorDesc& desc() const;  // defined in graph.cpp
  bool operator==(const Value&) const = default;
};

// The arguments with which an op adds its gradient to the graph.
struct Backprop {
  std::span<const Value> in;
  std::span<const Value> out;
  std::span<const std::optional<Value>> grad;  // d loss / d out[i]; nothing where no one needs it
  std::span<const bool> wanted;                // wanted[i]: someone needs d loss / d in[i]
};

// An op says what is computed; a kernel says how, on one device. Ops are immutable values. Operand
// shapes are always logical (see TensorDesc); layouts are the business of the layout pass.
class Op {
 public:
  virtual ~Op() = default;
  virtual std::string_view name() const = 0;

  // Shapes and types of the outputs (layout nchw). Throws Error that names the op and the shapes.
  virtual std::vector<TensorDesc> infer(std::span<const TensorDesc> in) const = 0;

  // The definition of the op in plain loops. All operands are plain(desc): row-major, f32 for every
  // real type. Oracle of all tests and, for local ops, the fallback on the CPU.
  virtual void reference(std::span<const TensorView> in, std::span<const TensorView> out) const = 0;

  // Adds nodes that compute d loss / d in[i] for each wanted i and returns them, nothing for an
  // input that no gradient reaches. The default throws: no gradient is known.
  virtual std::vector<std::optional<Value>> backward(const Backprop& backprop) const;

  // False: the result depends on what other ranks hold, so that loops of one rank do not define it.
  // It runs only where a table has a row for it.
  virtual bool is_local() const { return true; }

  virtual bool mutates(std::size_t /*input*/) const { return false; }  // written in place: weights
  virtual bool reads(std::size_t /*input*/) const { return true; }     // false: only written
  // out[output] may share the bytes of in[input] if this node is its last reader, whatever other
  // pairs share theirs. The planner decides; of one input it lets one output have the bytes.
  virtual bool may_overwrite(std::size_t /*input*/, std::size_t /*output*/) const { return false; }
  virtual Lane lane() const { return Lane::compute; }
  // Floating-point operations, a multiply-add counted as two; 0 where bytes decide the time.
  virtual double flops(std::span<const TensorDesc> /*in*/) const { return 0; }
  // Bytes of operands that must be read again however the op is computed, where they are larger
  // than any cache: no result can be made before all of an operand was read once.
  virtual std::size_t reread_bytes(std::span<const TensorDesc> /*in*/) const { return 0; }
};

}  // namespace cnn
