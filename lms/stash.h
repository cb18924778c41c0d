#pragma once

#include <cstddef>
#include <regex>
#include <string>
#include <string_view>
#include <vector>

#include "lms/policy.h"
#include "runtime/graph.h"
#include "runtime/schedule.h"

namespace cnn::lms {

// A tensor that the forward pass writes and the backward pass reads. For a tensor inside another
// one, the outer tensor is listed, which moves as a whole. All steps are compute steps of the
// schedule.
struct Stashed {
  TensorId tensor{};
  std::size_t bytes = 0;
  StepId made{};             // the last step that writes it
  std::vector<StepId> uses;  // ascending; reads of any part
  StepId last_forward{};     // the last use before the backward pass; `made` if there is none
  StepId first_backward{};   // the first use of the backward pass
  StepId last{};             // the last use
};

// A set of regular expressions for names of tensors or ops.
class NameFilter {
 public:
  // Throws Error that quotes the first text that is no regular expression.
  explicit NameFilter(const std::vector<std::string>& expressions);

  bool is_empty() const { return expressions_.empty(); }
  // Returns whether a part of the name matches one of the expressions.
  bool matches(std::string_view name) const;

 private:
  std::vector<std::regex> expressions_;
};

// Returns all stashed tensors, in the order of their creation, without outputs of the graph and
// tensors that a step mutates.
std::vector<Stashed> stashed(const Graph& graph, const Schedule& schedule, StepId backward);

// Returns the activations that Options::within_pass adds to these or lets leave more often: those
// that the options let leave, written and read by compute steps alone, in the order of their
// creation.
std::vector<TensorId> movable_within_passes(const Request& request);

// Returns the activations that the options let leave: by size, by name of the tensor, by name of
// its op. Throws Error if a regular expression is invalid.
std::vector<Stashed> candidates(const Request& request);

}  // namespace cnn::lms
