#pragma once

#include <memory>
#include <string>
#include <vector>

#include "runtime/graph.h"
#include "runtime/kernel.h"
#include "runtime/memory_plan.h"
#include "runtime/schedule.h"

namespace cnn {

// A planned step as data: it can be printed, verified, and simulated without the device.
struct StepPlan {
  std::shared_ptr<const Graph> graph;
  std::vector<KernelSpec> specs;  // by NodeId
  Schedule schedule;
  MemoryPlan memory;
};

struct Program {
  StepPlan plan;
  std::vector<std::unique_ptr<Kernel>> kernels;  // by NodeId
};

// Describes every node of a graph whose layouts are assigned, schedules it, plans its memory, links
// and verifies it. Throws Error with the op's name if the table cannot run a node.
StepPlan make_plan(std::shared_ptr<const Graph> graph, const KernelTable& table);
// Makes the plan in two parts, for a schedule edited in between (swaps, recomputation); keeps the
// waits of the schedule. enough: as in plan_memory().
std::vector<KernelSpec> describe(const Graph& graph, const KernelTable& table);
StepPlan make_plan(std::shared_ptr<const Graph> graph, std::vector<KernelSpec> specs,
                   Schedule schedule, std::size_t enough = 0);

// Makes the kernels of a plan.
Program make_program(StepPlan plan, const KernelTable& table);

// Fills Step::after with waits for data, for reused bytes, and the waits present before (such as
// the trigger of a copy). Keeps at most one wait per other lane and step: a later step of a lane
// implies the earlier ones, and redundant waits are dropped. Throws Error if a present wait is not
// for an earlier step.
void link(const Graph& graph, Schedule& schedule, const MemoryPlan& memory);

// Throws Error with names if a plan is wrong: a tensor used before it is there, two live blocks
// that overlap (other than in-place pairs), a block outside the arena, a missing wait, an unaligned
// offset, a spec that disagrees with the graph's descriptions, tensors that share bytes where no
// node makes one part of the other, or a node that runs again on another lane.
void verify(const StepPlan& plan);
// Also checks that the plan keeps every wait of the schedule `given`.
void verify(const StepPlan& plan, const Schedule& given);

// Returns one line per step (lane, action, layouts, offsets), then totals. For --print_plan.
std::string to_string(const StepPlan& plan);

}  // namespace cnn
