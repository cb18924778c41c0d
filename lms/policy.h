#pragma once

#include <cstddef>
#include <exception>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "lms/options.h"
#include "runtime/graph.h"
#include "runtime/kernel.h"
#include "runtime/schedule.h"
#include "runtime/timeline.h"

namespace cnn::lms {

// The bytes that a step may use.
struct Budget {
  std::size_t device = 0;  // of the arena: the memory beside the variables
  std::size_t host = 0;    // pinned, for swapped tensors
  // The bytes of a file for swapped tensors that the host has no room for; 0: there is none.
  std::size_t disk = 0;
  std::size_t swap_bytes() const { return host + disk; }  // of swapped tensors in all
};

// Returns whether nobody waits for the plan any more. Null: it is wanted in any case.
using StopCheck = bool (*)();

// Thrown by a planner whose StopCheck says that nobody waits for its plan. It is no Error, so that
// callers which try another size after an Error end as well.
class PlanningStopped : public std::exception {
 public:
  const char* what() const noexcept override { return "planning was interrupted"; }
};

// The input of a policy. The schedule is the unlimited step, without waits; all references
// must outlive the call.
struct Request {
  const Graph& graph;
  std::span<const KernelSpec> specs;  // by NodeId: workspaces
  const Schedule& schedule;
  StepId backward{};  // first step of the backward pass; the number of steps: none
  const Costs& costs;
  const Budget& budget;
  std::size_t variable_bytes = 0;  // outside the arena; the original policies include them
  const Options& options;
  StopCheck stopped = nullptr;  // asked by policies that search
  // A plan that takes so long is of no use: the caller has one that is as fast.
  double useful_seconds = std::numeric_limits<double>::infinity();
};

// A line for the user. 0: always; 1 and 2: with such a --lms_debug_level. The caller, who has a
// clock, replaces the braces in `took_text` by the policy's milliseconds in the format of
// python_text().
inline constexpr std::string_view took_text = "Editing model for LMS, took: {} ms";
struct Note {
  int level = 0;
  std::string text;
};

// The number of evictions of a replayed allocator: `ones` evicted a single tensor that was large
// enough; `alls` evicted several because none was. The originals evict all unused tensors then.
struct Reclaims {
  std::size_t ones = 0, alls = 0;
};

// A plan is a schedule: an order of Compute, Offload and Fetch steps with the waits that the policy
// requires. plan_memory() decides whether it fits, and simulate() predicts its time.
struct Plan {
  Schedule schedule;
  std::vector<Note> notes;  // the log of the original implementation
  // Arena bytes at which plan_memory() may stop; 0: it minimises.
  std::size_t enough = 0;
  std::size_t floor = 0;  // the least bytes with a plan, where the policy had to find them; else 0
  std::optional<Reclaims> reclaims = {};  // of policies that replay an allocator
};

// A pure function: equal requests give equal plans. Throws Error if options cannot be met.
using Policy = Plan (*)(const Request&);

}  // namespace cnn::lms
