#pragma once

#include <cstddef>
#include <span>
#include <variant>
#include <vector>

#include "runtime/divide_up.h"
#include "runtime/graph.h"

namespace cnn {

struct Schedule;

inline constexpr std::size_t alignment = 64;  // of every tensor and workspace, in bytes
constexpr std::size_t aligned(std::size_t bytes) { return round_up(bytes, alignment); }
// Direct I/O transfers multiples of this many bytes, from and to such offsets of a file and such
// addresses of host memory. It is the page size, which suffices for all common disks.
inline constexpr std::size_t disk_alignment = 4096;

// Bytes at a fixed offset of the arena from the start of step `first` to the end of step `last`:
// the last step that uses them, or a later one, so that no compute step waits for another lane only
// to reuse the bytes (runtime/block_lifetimes.h).
struct Block {
  std::variant<TensorId, NodeId> owner;  // a live interval, or the workspace of a node
  StepId first{}, last{};
  std::size_t offset = 0, bytes = 0;
};

// The offsets of everything that does not survive a step, in one arena. Variables lays out
// persistent tensors in front of the arena.
struct MemoryPlan {
  std::vector<Block> blocks;
  std::size_t device_bytes = 0;       // size of the arena: the highest end of a block
  std::size_t lower_bound_bytes = 0;  // maximum over the steps of the aligned bytes live in it
  // Swapped activations in the pinned host arena. A tensor that goes on to the disk is there until
  // its Store has ended, and again from its Load on.
  std::vector<Block> host_blocks;
  std::size_t host_bytes = 0;
  std::vector<Block> disk_blocks;  // stored activations in a file; each has its own place
  std::size_t disk_bytes = 0;
};

// workspace: bytes by NodeId. A node's output takes over the block of an input if the op permits it
// (Op::may_overwrite), the sizes agree and the node is the last to touch the input: then the blocks
// of both tensors have one offset and overlap in that one step. A tensor inside another tensor has
// no block of its own. enough: as in place(), for the device.
MemoryPlan plan_memory(const Graph& graph, const Schedule& schedule,
                       std::span<const std::size_t> workspace, std::size_t enough = 0);

// The largest number of bytes live in one step: plan_memory() cannot need less, and seldom needs
// over 1 % more, but often several per cent where memory is so short that a few large blocks fill
// it. Takes a tenth of plan_memory()'s time, for searches over many schedules.
struct PeakMemory {
  std::size_t device_bytes = 0, host_bytes = 0;
};
PeakMemory peak_memory(const Graph& graph, const Schedule& schedule,
                       std::span<const std::size_t> workspace);

// Returns the host bytes of plan_memory() in a fraction of its time, which the device's blocks
// take.
std::size_t host_arena_bytes(const Graph& graph, const Schedule& schedule);

// Returns whether the planner may let this output of a node reuse the bytes of this input, at the
// end of the input's live interval.
bool may_reuse_in_place(const Graph& graph, const Node& node, std::size_t input,
                        std::size_t output);

// Finds the blocks of a plan, or nullptr. Plan and graph must outlive the index.
class BlockIndex {
 public:
  BlockIndex(const Graph& graph, const MemoryPlan& memory);
  // Returns the block of a tensor, or of its outer tensor, during a step; the later one of two live
  // intervals whose blocks are both reserved then.
  const Block* tensor(TensorId id, StepId step) const;
  const Block* workspace(NodeId id, StepId step) const;  // of the step's node
  const Block* host(TensorId id, StepId step) const;     // of a swapped tensor, in the host arena
  const Block* disk(TensorId id) const;                  // of a stored tensor, in the file

 private:
  static const Block* at(const std::vector<const Block*>& blocks, StepId step);

  const Graph& graph_;
  std::vector<std::vector<const Block*>> tensors_, workspaces_, hosts_;
  std::vector<const Block*> disks_;
};

}  // namespace cnn
