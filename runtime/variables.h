#pragma once

#include <functional>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/graph.h"
#include "runtime/tensor.h"

namespace cnn {

struct Variable {
  TensorInfo info;         // as in the graph that declared it, with the layout it has in memory
  std::size_t offset = 0;  // in the storage of its place, a multiple of 64
  bool on_host = false;    // it lies in the storage on the host
};

// The named tensors that survive a step: parameters, state and derived tensors. Training,
// evaluation and checkpoints share one set. Assigns consecutive offsets; the caller owns the
// storage. A variable that only nodes of the copy lanes touch lies in host memory, since no kernel
// that computes reads or writes it there; all others lie on the device.
class Variables {
 public:
  // Takes every such tensor of the graph, in its order, then tensors with other names from `more`
  // (an evaluation of the same network). Throws if a name stands for two variables, or for one on
  // the host and one on the device.
  explicit Variables(const Graph& graph, const Graph* more = nullptr);

  std::span<const Variable> all() const { return variables_; }
  std::size_t bytes() const { return bytes_; }            // on the device
  std::size_t host_bytes() const { return host_bytes_; }  // on the host
  const Variable* find(std::string_view name) const;      // nullptr: no such variable

  // `storage` (64-byte aligned, at least bytes()) and `host` (at least host_bytes() of host memory,
  // may be null if that is 0) must outlive this object.
  void attach(std::byte* storage, std::byte* host = nullptr) {
    storage_ = storage;
    host_storage_ = host;
  }
  TensorView view(const Variable& variable) const;  // throws before attach()
  // Returns the storage of the variable of that name; throws if it is missing or has another
  // description.
  TensorView view(const TensorInfo& info) const;

 private:
  void take(const TensorInfo& info, bool on_host);

  std::vector<Variable> variables_;
  std::map<std::string, std::size_t, std::less<>> index_;  // name -> place in variables_
  std::size_t bytes_ = 0, host_bytes_ = 0;
  std::byte* storage_ = nullptr;
  std::byte* host_storage_ = nullptr;
};

}  // namespace cnn
