#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <variant>
#include <vector>

#include "runtime/graph.h"
#include "runtime/schedule.h"

namespace cnn {

constexpr bool is_persistent(Role role) {
  return role == Role::parameter || role == Role::state || role == Role::derived;
}

// The effect of a step on the device bytes of one tensor. define: begins a new interval (the output
// of a node, a fetched tensor); mutate: changes the tensor in place.
struct Access {
  enum class Kind : std::uint8_t { read, mutate, define };
  TensorId tensor{};
  Kind kind = Kind::read;
};

// Calls visit(Access) for every operand: inputs in their order, then outputs. An Offload reads. A
// Store or Load touches no device bytes.
template <class Visit>
void for_each_access(const Graph& graph, const Action& action, Visit visit) {
  if (const auto* compute = std::get_if<Compute>(&action)) {
    const Node& node = graph.nodes()[index_of(compute->node)];
    for (std::size_t i = 0; i < node.inputs.size(); ++i) {
      const bool mutates = node.op->mutates(i);
      visit(Access{node.inputs[i], mutates ? Access::Kind::mutate : Access::Kind::read});
    }
    for (const TensorId output : node.outputs) {
      visit(Access{output, Access::Kind::define});
    }
  } else if (const auto* offload = std::get_if<Offload>(&action)) {
    visit(Access{offload->tensor, Access::Kind::read});
  } else if (const auto* fetch = std::get_if<Fetch>(&action)) {
    visit(Access{fetch->tensor, Access::Kind::define});
  }
}

// Returns the tensor of a Store or Load; nothing for other actions.
std::optional<TensorId> moved_by_disk(const Action& action);

// Returns the accesses that for_each_access() visits, as a list.
std::vector<Access> accesses(const Graph& graph, const Action& action);

}  // namespace cnn
