#pragma once

#include <memory>
#include <string>
#include <vector>

#include "runtime/graph.h"
#include "runtime/kernel.h"
#include "runtime/memory_plan.h"
#include "runtime/schedule.h"

namespace cnn {

// A planned step as data: it can be printed, verified, and simulated on a machine without the
// device.
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

// Describes every node of a graph whose layouts are settled, schedules it, plans its memory, links
// and verifies it. Throws Error that names the op if the table cannot run a node as it stands.
StepPlan make_plan(std::shared_ptr<const Graph> graph, const KernelTable& table);
// The same in two parts, for a schedule that was edited in between (swaps, recomputation); waits
// that it has are kept. enough: as of plan_memory().
std::vector<KernelSpec> describe(const Graph& graph, const KernelTable& table);
StepPlan make_plan(std::shared_ptr<const Graph> graph, std::vector<KernelSpec> specs,
                   Schedule schedule, std::size_t enough = 0);

// Makes the kernels of a plan.
Program make_program(StepPlan plan, const KernelTable& table);

// Fills Step::after: waits for data, for bytes that are reused, and those that are there already (a
// caller's, such as the trigger of a copy), at most one per other lane and step: a later step of a
// lane implies the earlier ones, and what is known anyway is left out. Throws Error if a wait that
// is there is not for an earlier step.
void link(const Graph& graph, Schedule& schedule, const MemoryPlan& memory);

// Throws Error with names if a plan is wrong: a tensor used before it is there, two live blocks
// that overlap (but for in-place pairs), a block outside the arena, a missing wait, an unaligned
// offset, a spec that disagrees with the descriptions in the graph, tensors that share bytes where
// no node makes one part of the other, or a node that runs again on another lane.
void verify(const StepPlan& plan);
// Also that it keeps every wait of the schedule that it was made of.
void verify(const StepPlan& plan, const Schedule& given);

// One line per step: lane, what it does, layouts, offsets; then totals. For --print_plan.
std::string to_string(const StepPlan& plan);

}  // namespace cnn
