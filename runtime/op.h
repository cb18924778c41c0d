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
  // d loss / d out[i]; nothing if no gradient reaches it
  std::span<const std::optional<Value>> grad;
  std::span<const bool> wanted;  // wanted[i]: whether d loss / d in[i] is needed
};

// An op defines a computation; a kernel performs it on one device. Ops are immutable values.
// Operand shapes are always logical (see TensorDesc); the layout pass handles layouts.
class Op {
 public:
  virtual ~Op() = default;
  virtual std::string_view name() const = 0;

  // Returns shapes and types of the outputs (layout nchw). Throws Error with the op and the shapes.
  virtual std::vector<TensorDesc> infer(std::span<const TensorDesc> in) const = 0;

  // Computes the op in plain loops, which define it. All operands are plain(desc): row-major, f32
  // for every real type. The oracle of all tests and, for local ops, the fallback on the CPU.
  virtual void reference(std::span<const TensorView> in, std::span<const TensorView> out) const = 0;

  // Adds nodes that compute d loss / d in[i] for each wanted i and returns them, nothing for an
  // input that no gradient reaches. The default throws: the op has no gradient.
  virtual std::vector<std::optional<Value>> backward(const Backprop& backprop) const;

  // False: the result depends on other ranks' data, so loops of one rank do not define it. Such an
  // op runs only where a table has a row for it.
  virtual bool is_local() const { return true; }

  virtual bool mutates(std::size_t /*input*/) const { return false; }  // written in place: weights
  virtual bool reads(std::size_t /*input*/) const { return true; }     // false: only written
  // Whether out[output] may share the bytes of in[input] if this node is its last reader,
  // independent of other shared pairs. The planner decides; it lets at most one output take an
  // input's bytes.
  virtual bool may_overwrite(std::size_t /*input*/, std::size_t /*output*/) const { return false; }
  virtual Lane lane() const { return Lane::compute; }
  // Returns floating-point operations, a multiply-add counted as two; 0 if bandwidth decides the
  // time.
  virtual double flops(std::span<const TensorDesc> /*in*/) const { return 0; }
  // Returns the operand bytes that every algorithm must read twice if they exceed any cache: no
  // result can be computed before one full read of the operand.
  virtual std::size_t reread_bytes(std::span<const TensorDesc> /*in*/) const { return 0; }
};

}  // namespace cnn
