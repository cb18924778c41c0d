#include "runtime/memory_plan.h"

#include <algorithm>
#include <optional>

#include "runtime/liveness.h"
#include "runtime/placement.h"

namespace cnn {
namespace {

// Blocks that lie at one offset because each takes over the bytes of the one before: one interval.
struct Chain {
  std::vector<std::size_t> blocks;
  Interval interval;
};

class Planner {
 public:
  Planner(const Graph& graph, const Schedule& schedule, std::span<const std::size_t> workspace)
      : graph_(graph), schedule_(schedule), workspace_(workspace) {}

  MemoryPlan plan() {
    add_tensors();
    add_workspaces();
    place_chains();
    add_host_blocks();
    return std::move(plan_);
  }

 private:
  void add_tensors() {
    live_.resize(graph_.tensors().size());
    // A stay begins later than all stays it may take over: they come in the order of their start.
    for (const Residency& stay : residencies(graph_, schedule_)) {
      const std::size_t block = plan_.blocks.size();
      plan_.blocks.push_back({.owner = stay.tensor,
                              .first = stay.first,
                              .last = stay.last,
                              .bytes = graph_.info(stay.tensor).desc.bytes()});
      const auto taken = taken_over(stay);
      if (taken) {
        chain_of_.push_back(chain_of_[*taken]);
        chains_[chain_of_.back()].interval.last = static_cast<std::uint32_t>(index_of(stay.last));
        chains_[chain_of_.back()].blocks.push_back(block);
      } else {
        chain_of_.push_back(chains_.size());
        add_chain(block);
      }
      live_[index_of(stay.tensor)] = block;
    }
  }

  // The block of an input whose bytes output 0 may use from here on.
  std::optional<std::size_t> taken_over(const Residency& stay) const {
    const auto* compute = std::get_if<Compute>(&schedule_.steps[index_of(stay.first)].action);
    if (compute == nullptr) {
      return std::nullopt;
    }
    const Node& node = graph_.nodes()[index_of(compute->node)];
    if (node.outputs.front() != stay.tensor) {
      return std::nullopt;
    }
    for (std::size_t i = 0; i < node.inputs.size(); ++i) {
      const auto block = live_[index_of(node.inputs[i])];  // nothing for a variable
      if (may_take_over(graph_, node, i) && block && plan_.blocks[*block].last == stay.first) {
        return block;
      }
    }
    return std::nullopt;
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
                              .last = step,
                              .bytes = workspace_[index_of(compute->node)]});
      add_chain(plan_.blocks.size() - 1);
    }
  }

  void add_chain(std::size_t block) {
    const Block& b = plan_.blocks[block];
    chains_.push_back({.blocks = {block},
                       .interval = {.first = static_cast<std::uint32_t>(index_of(b.first)),
                                    .last = static_cast<std::uint32_t>(index_of(b.last)),
                                    .bytes = aligned(b.bytes)}});
  }

  void place_chains() {
    std::erase_if(chains_, [](const Chain& chain) { return chain.interval.bytes == 0; });
    std::vector<Interval> intervals;
    for (const Chain& chain : chains_) {
      intervals.push_back(chain.interval);
    }
    const Placement placement = place(intervals);
    for (std::size_t c = 0; c < chains_.size(); ++c) {
      for (const std::size_t block : chains_[c].blocks) {
        Block& placed = plan_.blocks[block];
        placed.offset = placement.offsets[c];
        plan_.device_bytes = std::max(plan_.device_bytes, placed.offset + placed.bytes);
      }
    }
    // The bound counts whole alignment units; the last of them need not be filled.
    plan_.lower_bound_bytes = std::min(lower_bound(intervals), plan_.device_bytes);
  }

  // From each Offload of an activation to the last Fetch before the next one. Inputs come from the
  // host and outputs have their own place there.
  void add_host_blocks() {
    std::vector<bool> has_home(graph_.tensors().size());
    for (const Output& output : graph_.outputs()) {
      has_home[index_of(output.tensor)] = true;
    }
    std::vector<std::optional<std::size_t>> current(graph_.tensors().size());
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
          current[index_of(offload->tensor)] = plan_.host_blocks.size();
          plan_.host_blocks.push_back(
              {.owner = offload->tensor, .first = step, .last = step, .bytes = info.desc.bytes()});
        }
      }
    }
    place_host_blocks();
  }

  void place_host_blocks() {
    std::vector<Interval> intervals;
    std::vector<Block*> blocks;
    for (Block& block : plan_.host_blocks) {
      if (block.bytes > 0) {
        blocks.push_back(&block);
        intervals.push_back({.first = static_cast<std::uint32_t>(index_of(block.first)),
                             .last = static_cast<std::uint32_t>(index_of(block.last)),
                             .bytes = aligned(block.bytes)});
      }
    }
    const Placement placement = place(intervals);
    for (std::size_t b = 0; b < blocks.size(); ++b) {
      blocks[b]->offset = placement.offsets[b];
    }
    plan_.host_bytes = placement.height;
  }

  const Graph& graph_;
  const Schedule& schedule_;
  std::span<const std::size_t> workspace_;
  MemoryPlan plan_;
  std::vector<Chain> chains_;
  std::vector<std::size_t> chain_of_;             // by block of a tensor
  std::vector<std::optional<std::size_t>> live_;  // by TensorId: the block of its latest stay
};

}  // namespace

bool may_take_over(const Graph& graph, const Node& node, std::size_t input) {
  const TensorId tensor = node.inputs[input];
  return !node.outputs.empty() && node.op->may_overwrite(input) && !node.op->mutates(input) &&
         std::count(node.inputs.begin(), node.inputs.end(), tensor) == 1 &&
         !graph.info(tensor).alias && !graph.info(node.outputs.front()).alias &&
         graph.info(tensor).desc.bytes() == graph.info(node.outputs.front()).desc.bytes();
}

MemoryPlan plan_memory(const Graph& graph, const Schedule& schedule,
                       std::span<const std::size_t> workspace) {
  return Planner(graph, schedule, workspace).plan();
}

BlockIndex::BlockIndex(const Graph& graph, const MemoryPlan& memory)
    : graph_(graph),
      tensors_(graph.tensors().size()),
      workspaces_(graph.nodes().size()),
      hosts_(graph.tensors().size()) {
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
}

const Block* BlockIndex::at(const std::vector<const Block*>& blocks, StepId step) {
  for (const Block* block : blocks) {  // stays of one tensor: one, or a few
    if (block->first <= step && step <= block->last) {
      return block;
    }
  }
  return nullptr;
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

}  // namespace cnn
