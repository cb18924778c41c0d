#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "runtime/tensor.h"

namespace cnn::lms {

struct Request;

// The planning problem of a request as plain tables, for searches that evaluate thousands of plans.
// A root is an input or activation with its own bytes; tensors inside it belong to it.
struct Root {
  TensorId tensor{};
  std::size_t bytes = 0;              // aligned
  std::vector<std::uint32_t> makers;  // nodes that write it or a part of it, in order
  bool is_input = false;              // the host has it: it can be fetched again
  bool may_leave = false;             // a candidate of the options: written forward, read backward
  bool may_drop = false;              // and its makers may run again before each use
  bool may_swap = true;               // the host can hold it, if only on its way to the disk
  // It may also be away between two uses in one pass, or before its first use.
  bool may_leave_often = false;
  bool needed_backward = false;  // by a step of the backward pass
  // The step before which it may be recomputed early (drop_early): the one that writes the largest
  // other operand of its first use in the backward pass. Its sources are then free before that
  // operand is there.
  std::optional<std::uint32_t> early;
  // Compute steps that read it, as indices in PlanningProblem::steps, and those of them in the
  // backward pass.
  std::vector<std::uint32_t> uses, backward_uses;
  std::uint32_t written = 0;  // the last step that writes it
  bool used_apart = false;    // a compute step that does not read it lies between two of these
};

struct ProblemNode {
  std::vector<std::uint32_t> reads, writes;  // roots, each once; without variables
  std::size_t workspace = 0;                 // bytes, aligned
  double seconds = 0;
  // Outputs that may take over the bytes of inputs, in the planner's order: each takes the first
  // input that ends there and is not taken.
  struct InPlaceReuse {
    std::uint32_t from = 0, to = 0;  // roots
  };
  std::vector<InPlaceReuse> may_reuse;
  bool may_repeat = false;  // reads only activations, in the forward pass, and mutates nothing
};

enum class StepKind : std::uint8_t { compute, fetch, offload };
struct ProblemStep {
  StepKind kind = StepKind::compute;
  std::uint32_t id = 0;  // node, or root
};

struct PlanningProblem {
  std::vector<Root> roots;
  std::vector<ProblemNode> nodes;   // by NodeId
  std::vector<ProblemStep> steps;   // of the schedule
  std::size_t backward = 0;         // index of the first step of the backward pass
  double out_bytes_per_second = 0;  // 0: copies take no time
  double in_bytes_per_second = 0;
  double copy_latency = 0;  // seconds
  // For swapped tensors; without a disk, disk_bytes is 0.
  std::size_t host_bytes = 0, disk_bytes = 0;
  double store_bytes_per_second = 0, load_bytes_per_second = 0;
};

PlanningProblem planning_problem(const Request& request);

}  // namespace cnn::lms
