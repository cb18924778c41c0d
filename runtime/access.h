#pragma once

#include <cstdint>
#include <vector>

#include "runtime/graph.h"
#include "runtime/schedule.h"

namespace cnn {

constexpr bool is_persistent(Role role) {
  return role == Role::parameter || role == Role::state || role == Role::derived;
}

// What a step does to the device bytes of one tensor. define: a new stay begins (a node's output, a
// tensor that is fetched); mutate: changed in place.
struct Access {
  enum class Kind : std::uint8_t { read, mutate, define };
  TensorId tensor{};
  Kind kind = Kind::read;
};

// One for every operand: inputs in their order, then outputs. An Offload reads.
std::vector<Access> accesses(const Graph& graph, const Action& action);

}  // namespace cnn
