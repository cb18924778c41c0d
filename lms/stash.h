#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "lms/policy.h"
#include "runtime/graph.h"
#include "runtime/schedule.h"

namespace cnn::lms {

// A tensor that the forward pass makes and the backward pass needs. A tensor that lies inside
// another is not listed, but the outer one, which moves as a whole. All steps are compute steps of
// the schedule.
struct Stashed {
  TensorId tensor{};
  std::size_t bytes = 0;
  StepId made{};             // by the last step that writes it
  std::vector<StepId> uses;  // ascending; reads, of any part
  StepId last_forward{};     // the last use before the backward pass; `made` if there is none
  StepId first_backward{};   // the first use of the backward pass
  StepId last{};             // the last use
};

// All of them, in the order in which they are made. Outputs of the graph and what a step mutates
// are not among them.
std::vector<Stashed> stashed(const Graph& graph, const Schedule& schedule, StepId backward);

// Returns the activations that the options let leave: by size, by name of the tensor, by name of
// the op that makes it. Throws Error if an expression is not regular.
std::vector<Stashed> candidates(const Request& request);

}  // namespace cnn::lms
