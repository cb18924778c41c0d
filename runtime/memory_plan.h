#pragma once

#include <cstddef>
#include <span>
#include <variant>
#include <vector>

#include "runtime/graph.h"

namespace cnn {

struct Schedule;

inline constexpr std::size_t alignment = 64;  // of every tensor and workspace, in bytes
constexpr std::size_t aligned(std::size_t bytes) {
  return (bytes + alignment - 1) / alignment * alignment;
}

// Bytes at a fixed place in the arena from the start of step `first` to the end of step `last`: the
// last that uses them, or a later one, so that no compute step waits for another lane because of
// them alone (runtime/block_lifetimes.h).
struct Block {
  std::variant<TensorId, NodeId> owner;  // a live interval, or the workspace of a node
  StepId first{}, last{};
  std::size_t offset = 0, bytes = 0;
};

// Where everything that does not survive a step lies in one arena. Persistent tensors are laid out
// by Variables, in front of it.
struct MemoryPlan {
  std::vector<Block> blocks;
  std::size_t device_bytes = 0;       // size of the arena: the highest end of a block
  std::size_t lower_bound_bytes = 0;  // maximum over the steps of the aligned bytes live in it
  std::vector<Block> host_blocks;     // swapped activations in the pinned host arena
  std::size_t host_bytes = 0;
};

// workspace: bytes by NodeId. A node's output takes over the block of an input where the op permits
// it (Op::may_overwrite), the sizes agree and the node is the last to touch it: then both
// tensors have a block at one offset that overlap in that one step. A tensor that lies inside
// another has no block: it is a part of that one's. enough: as of place(), for the device.
MemoryPlan plan_memory(const Graph& graph, const Schedule& schedule,
                       std::span<const std::size_t> workspace, std::size_t enough = 0);

// The most bytes that are live in one step: plan_memory() cannot need less, and seldom needs more
// than one per cent more. Takes a tenth of its time, for searches over many schedules.
struct PeakMemory {
  std::size_t device_bytes = 0, host_bytes = 0;
};
PeakMemory peak_memory(const Graph& graph, const Schedule& schedule,
                       std::span<const std::size_t> workspace);

// Whether the planner may let this output of a node use the bytes of this input where its life
// ends.
bool may_take_over(const Graph& graph, const Node& node, std::size_t input, std::size_t output);

// Finds the blocks of a plan, which must outlive it as the graph must; nullptr where there is none.
class BlockIndex {
 public:
  BlockIndex(const Graph& graph, const MemoryPlan& memory);
  // Where a tensor, or the one that it lies inside, lies during a step: of its two intervals whose
  // bytes are kept then, the later.
  const Block* tensor(TensorId id, StepId step) const;
  const Block* workspace(NodeId id, StepId step) const;  // of the node that this step runs
  const Block* host(TensorId id, StepId step) const;     // where a swapped tensor lies on the host

 private:
  static const Block* at(const std::vector<const Block*>& blocks, StepId step);

  const Graph& graph_;
  std::vector<std::vector<const Block*>> tensors_, workspaces_, hosts_;
};

}  // namespace cnn
