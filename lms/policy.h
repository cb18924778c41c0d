#pragma once

#include <cstddef>
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

// Bytes that a step may take.
struct Budget {
  std::size_t device = 0;  // of the arena: what is left beside the variables
  std::size_t host = 0;    // pinned, for what leaves
};

// The input of a policy. The schedule is the unlimited step, without waits; all references
// must outlive the call.
struct Request {
  const Graph& graph;
  std::span<const KernelSpec> specs;  // by NodeId: workspaces
  const Schedule& schedule;
  StepId backward{};  // the first step of the backward pass; the number of steps: there is none
  const Costs& costs;
  const Budget& budget;
  std::size_t variable_bytes = 0;  // beside the arena, which the original policies count in
  const Options& options;
};

// A line for the user. 0: always; 1 and 2: where --lms_debug_level asks for it. In `took_text` the
// caller, who has a clock, puts the milliseconds that the policy took, as python_text() writes
// them.
inline constexpr std::string_view took_text = "Editing model for LMS, took: {} ms";
struct Note {
  int level = 0;
  std::string text;
};

// A plan is a schedule: an order of Compute, Offload and Fetch with the waits that were asked for,
// nothing else. Whether it fits is the business of plan_memory(); what it takes, of simulate().
struct Plan {
  Schedule schedule;
  std::vector<Note> notes;  // what the original would have logged
  // Bytes of the arena that plan_memory() need not undercut; 0: as few as it finds.
  std::size_t enough = 0;
  std::size_t floor = 0;  // the least bytes with a plan, where the policy had to find them; else 0
};

// Pure: equal requests give equal plans. Throws Error for options that cannot be obeyed.
using Policy = Plan (*)(const Request&);

}  // namespace cnn::lms
