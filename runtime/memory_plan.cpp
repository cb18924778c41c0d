#include "runtime/memory_plan.h"

#include <algorithm>
#include <optional>

#include "runtime/access.h"
#include "runtime/block_lifetimes.h"
#include "runtime/error.h"
#include "runtime/liveness.h"
#include "runtime/placement.h"

namespace cnn {
namespace {

// Blocks at one offset, each of which takes over the bytes of the previous one: one interval.
struct Chain {
  std::vector<std::size_t> blocks;
  Interval interval;
};

class Planner {
 public:
  Planner(const Graph& graph, const Schedule& schedule, std::span<const std::size_t> workspace)
      : graph_(graph), schedule_(schedule), workspace_(workspace), holds_(graph, schedule) {
    add_tensors();
    add_workspaces();
    add_host_blocks();
    std::erase_if(chains_, [](const Chain& chain) { return chain.interval.bytes == 0; });
  }

  MemoryPlan place(std::size_t enough) {
    place_chains(enough);
    place_host_blocks();
    return std::move(plan_);
  }

  std::size_t place_on_host() {
    place_host_blocks();
    return plan_.host_bytes;
  }

  PeakMemory peak() const {
    return {.device_bytes = lower_bound(intervals_of(chains_)),
            .host_bytes = lower_bound(host_intervals())};
  }

 private:
  void add_tensors() {
    live_.resize(graph_.tensors().size());
    intervals_ = live_intervals(graph_, schedule_);
    plan_.blocks.reserve(intervals_.size());
    // An interval begins later than all intervals it may take over, so intervals are visited by
    // start.
    for (const LiveInterval& interval : intervals_) {
      const std::size_t block = plan_.blocks.size();
      plan_.blocks.push_back({.owner = interval.tensor,
                              .first = interval.first,
                              .last = holds_.of(interval),
                              .bytes = graph_.info(interval.tensor).desc.bytes()});
      if (const auto taken = reused_in_place(interval)) {
        plan_.blocks[*taken].last = interval.first;
        chain_of_.push_back(chain_of_[*taken]);
        chains_[chain_of_.back()].interval.last = step_of(plan_.blocks[block].last);
        chains_[chain_of_.back()].blocks.push_back(block);
      } else {
        chain_of_.push_back(chains_.size());
        add_chain(block);
      }
      live_[index_of(interval.tensor)] = block;
    }
  }

  // Returns the block of an input whose bytes this output may use from here on.
  std::optional<std::size_t> reused_in_place(const LiveInterval& interval) const {
    const auto* compute = std::get_if<Compute>(&schedule_.steps[index_of(interval.first)].action);
    if (compute == nullptr) {
      return std::nullopt;
    }
    const Node& node = graph_.nodes()[index_of(compute->node)];
    const auto output = std::find(node.outputs.begin(), node.outputs.end(), interval.tensor);
    if (output == node.outputs.end()) {
      return std::nullopt;  // others lie inside it
    }
    const auto k = static_cast<std::size_t>(output - node.outputs.begin());
    for (std::size_t i = 0; i < node.inputs.size(); ++i) {
      const auto block = live_[index_of(node.inputs[i])];  // nothing for a variable
      if (may_reuse_in_place(graph_, node, i, k) && block &&
          intervals_[*block].last == interval.first && !is_taken(*block) &&
          holds_.may_reuse_in_place(intervals_[*block])) {
        return block;
      }
    }
    return std::nullopt;
  }

  // Returns whether another output of the same step has taken the block.
  bool is_taken(std::size_t block) const {
    return chains_[chain_of_[block]].blocks.back() != block;
  }

  void add_workspaces() {
    for (std::size_t s = 0; s < schedule_.steps.size(); ++s) {
      const auto* compute = std::get_if<Compute>(&schedule_.steps[s].action);
      if (compute == nullptr || workspace_[index_of(compute->node)] == 0) {
        continue;
      }
      const StepId step{static_cast<std::uint32_t>(s)};
      plan_.blocks.push_back({.owner = compute->node,
                              .first = step,
                              .last = holds_.of_workspace(step),
                              .bytes = workspace_[index_of(compute->node)]});
      add_chain(plan_.blocks.size() - 1);
    }
  }

  void add_chain(std::size_t block) {
    const Block& b = plan_.blocks[block];
    chains_.push_back({.blocks = {block}, .interval = interval_of(b)});
  }

  static std::uint32_t step_of(StepId step) { return static_cast<std::uint32_t>(index_of(step)); }
  static Interval interval_of(const Block& block) {
    return {
        .first = step_of(block.first), .last = step_of(block.last), .bytes = aligned(block.bytes)};
  }

  static std::vector<Interval> intervals_of(const std::vector<Chain>& chains) {
    std::vector<Interval> intervals;
    intervals.reserve(chains.size());
    for (const Chain& chain : chains) {
      intervals.push_back(chain.interval);
    }
    return intervals;
  }
  static std::vector<Interval> intervals_of(const std::vector<Block>& blocks) {
    std::vector<Interval> intervals;
    for (const Block& block : blocks) {
      if (block.bytes > 0) {
        intervals.push_back(interval_of(block));
      }
    }
    return intervals;
  }

  void place_chains(std::size_t enough) {
    const std::vector<Interval> intervals = intervals_of(chains_);
    const Placement placement = cnn::place(intervals, enough);
    for (std::size_t c = 0; c < chains_.size(); ++c) {
      for (const std::size_t block : chains_[c].blocks) {
        Block& placed = plan_.blocks[block];
        placed.offset = placement.offsets[c];
        plan_.device_bytes = std::max(plan_.device_bytes, placed.offset + placed.bytes);
      }
    }
    // The bound counts whole alignment units; the last of them may be partly empty.
    plan_.lower_bound_bytes = std::min(lower_bound(intervals), plan_.device_bytes);
  }

  // Adds a block from each Offload of an activation to its Store, or to the last Fetch before the
  // next Offload, and from each Load to the last Fetch behind it. Inputs and outputs have separate
  // host memory.
  void add_host_blocks() {
    std::vector<bool> has_home(graph_.tensors().size());
    for (const Output& output : graph_.outputs()) {
      has_home[index_of(output.tensor)] = true;
    }
    find_stored();
    std::vector<std::optional<std::size_t>> current(graph_.tensors().size());
    const auto begin = [&](TensorId tensor, StepId step) {
      const std::size_t bytes = graph_.info(tensor).desc.bytes();
      current[index_of(tensor)] = plan_.host_blocks.size();
      plan_.host_blocks.push_back(
          {.owner = tensor,
           .first = step,
           .last = step,
           .bytes = stored_[index_of(tensor)] ? round_up(bytes, disk_alignment) : bytes});
    };
    for (std::size_t s = 0; s < schedule_.steps.size(); ++s) {
      const StepId step{static_cast<std::uint32_t>(s)};
      const Action& action = schedule_.steps[s].action;
      if (const auto* fetch = std::get_if<Fetch>(&action)) {
        if (const auto block = current[index_of(fetch->tensor)]) {
          plan_.host_blocks[*block].last = step;
        }
      } else if (const auto* offload = std::get_if<Offload>(&action)) {
        const TensorInfo& info = graph_.info(offload->tensor);
        if (info.role == Role::activation && !has_home[index_of(offload->tensor)]) {
          begin(offload->tensor, step);
        }
      } else if (const auto* store = std::get_if<Store>(&action)) {
        plan_.host_blocks[host_copy(current, store->tensor)].last = holds_.of_stored(step);
        current[index_of(store->tensor)].reset();
      } else if (const auto* load = std::get_if<Load>(&action)) {
        begin(load->tensor, step);
      }
    }
  }

  // Gives each stored tensor a place of its own in the file: disks are large, and nothing waits for
  // the bytes of another tensor.
  void find_stored() {
    stored_.assign(graph_.tensors().size(), false);
    for (std::uint32_t s = 0; s < schedule_.steps.size(); ++s) {
      const std::optional<TensorId> moved = moved_by_disk(schedule_.steps[s].action);
      if (!moved) {
        continue;
      }
      const StepId step{s};
      if (stored_[index_of(*moved)]) {
        const auto block = std::ranges::find(plan_.disk_blocks,
                                             std::variant<TensorId, NodeId>(*moved), &Block::owner);
        block->last = step;
        continue;
      }
      stored_[index_of(*moved)] = true;
      const std::size_t bytes = round_up(graph_.info(*moved).desc.bytes(), disk_alignment);
      plan_.disk_blocks.push_back({.owner = *moved,
                                   .first = step,
                                   .last = step,
                                   .offset = plan_.disk_bytes,
                                   .bytes = bytes});
      plan_.disk_bytes += bytes;
    }
  }

  std::size_t host_copy(const std::vector<std::optional<std::size_t>>& current,
                        TensorId tensor) const {
    const auto block = current[index_of(tensor)];
    if (!block) {
      throw Error("the schedule stores " + graph_.info(tensor).name +
                  ", which has no copy on the host");
    }
    return *block;
  }

  // Sizes are multiples of the disk's alignment beside stored tensors, so that all offsets are.
  std::vector<Interval> host_intervals() const {
    std::vector<Interval> intervals = intervals_of(plan_.host_blocks);
    for (Interval& interval : intervals) {
      interval.bytes =
          plan_.disk_blocks.empty() ? interval.bytes : round_up(interval.bytes, disk_alignment);
    }
    return intervals;
  }

  void place_host_blocks() {
    const Placement placement = cnn::place(host_intervals());
    std::size_t placed = 0;
    for (Block& block : plan_.host_blocks) {
      if (block.bytes > 0) {
        block.offset = placement.offsets[placed++];
      }
    }
    plan_.host_bytes = placement.height;
  }

  const Graph& graph_;
  const Schedule& schedule_;
  std::span<const std::size_t> workspace_;
  BlockLifetimes holds_;
  std::vector<LiveInterval> intervals_;
  MemoryPlan plan_;
  std::vector<Chain> chains_;
  std::vector<std::size_t> chain_of_;             // by block of a tensor; a block is an interval
  std::vector<std::optional<std::size_t>> live_;  // by TensorId: the block of its latest interval
  std::vector<bool> stored_;                      // by TensorId: goes to the disk
};

}  // namespace

bool may_reuse_in_place(const Graph& graph, const Node& node, std::size_t input,
                        std::size_t output) {
  const TensorId tensor = node.inputs[input];
  const TensorInfo& from = graph.info(tensor);
  const TensorInfo& to = graph.info(node.outputs[output]);
  return node.op->may_overwrite(input, output) && !node.op->mutates(input) &&
         std::count(node.inputs.begin(), node.inputs.end(), tensor) == 1 && !from.alias &&
         !to.alias && from.desc.bytes() == to.desc.bytes();
}

MemoryPlan plan_memory(const Graph& graph, const Schedule& schedule,
                       std::span<const std::size_t> workspace, std::size_t enough) {
  return Planner(graph, schedule, workspace).place(enough);
}

PeakMemory peak_memory(const Graph& graph, const Schedule& schedule,
                       std::span<const std::size_t> workspace) {
  return Planner(graph, schedule, workspace).peak();
}

std::size_t host_arena_bytes(const Graph& graph, const Schedule& schedule) {
  const std::vector<std::size_t> no_workspaces(graph.nodes().size());
  return Planner(graph, schedule, no_workspaces).place_on_host();
}

BlockIndex::BlockIndex(const Graph& graph, const MemoryPlan& memory)
    : graph_(graph),
      tensors_(graph.tensors().size()),
      workspaces_(graph.nodes().size()),
      hosts_(graph.tensors().size()),
      disks_(graph.tensors().size()) {
  for (const Block& block : memory.blocks) {
    if (const auto* tensor = std::get_if<TensorId>(&block.owner)) {
      tensors_.at(index_of(*tensor)).push_back(&block);
    } else {
      workspaces_.at(index_of(std::get<NodeId>(block.owner))).push_back(&block);
    }
  }
  for (const Block& block : memory.host_blocks) {
    hosts_.at(index_of(std::get<TensorId>(block.owner))).push_back(&block);
  }
  for (const Block& block : memory.disk_blocks) {
    disks_.at(index_of(std::get<TensorId>(block.owner))) = &block;
  }
}

const Block* BlockIndex::at(const std::vector<const Block*>& blocks, StepId step) {
  const Block* latest = nullptr;
  for (const Block* block : blocks) {  // intervals of one tensor: few
    const bool later = latest == nullptr || latest->first < block->first;
    if (block->first <= step && step <= block->last && later) {
      latest = block;
    }
  }
  return latest;
}

const Block* BlockIndex::tensor(TensorId id, StepId step) const {
  return at(tensors_[index_of(graph_.root_of(id))], step);
}
const Block* BlockIndex::workspace(NodeId id, StepId step) const {
  return at(workspaces_[index_of(id)], step);
}
const Block* BlockIndex::host(TensorId id, StepId step) const {
  return at(hosts_[index_of(id)], step);
}
const Block* BlockIndex::disk(TensorId id) const { return disks_[index_of(id)]; }

}  // namespace cnn
