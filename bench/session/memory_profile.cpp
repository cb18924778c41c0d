#include "bench/session/memory_profile.h"

#include <algorithm>
#include <cstdint>
#include <vector>

#include "lms/summary.h"
#include "runtime/memory_plan.h"

namespace cnn::bench {
namespace {

constexpr std::size_t max_named = 12;  // tensors

// Returns live bytes by StepId. An in-place output shares bytes with its input for a step: the
// union counts them once, unlike a sum.
std::vector<std::size_t> live_bytes(const StepPlan& plan) {
  std::vector<std::size_t> live(plan.schedule.steps.size(), 0);
  for (const Block& block : plan.memory.blocks) {
    for (std::size_t s = index_of(block.first); s <= index_of(block.last); ++s) {
      live[s] += block.bytes;
    }
  }
  for (const Block& block : plan.memory.blocks) {
    const bool reused_in_place = std::ranges::any_of(plan.memory.blocks, [&](const Block& next) {
      return &next != &block && next.offset == block.offset && next.first == block.last &&
             next.first != block.first;
    });
    if (reused_in_place) {
      live[index_of(block.last)] -= block.bytes;
    }
  }
  return live;
}

std::string owner_name(const Graph& graph, const Block& block) {
  if (const auto* tensor = std::get_if<TensorId>(&block.owner)) {
    return graph.info(*tensor).name;
  }
  return "workspace of " + to_string(graph, Compute{std::get<NodeId>(block.owner)});
}

Json biggest_at(const StepPlan& plan, std::size_t peak) {
  std::vector<const Block*> there;
  for (const Block& block : plan.memory.blocks) {
    if (index_of(block.first) <= peak && peak <= index_of(block.last)) {
      there.push_back(&block);
    }
  }
  std::ranges::stable_sort(there, std::ranges::greater{}, &Block::bytes);
  there.resize(std::min(there.size(), max_named));
  Json rows = Json::array();
  for (const Block* block : there) {
    rows.push_back({{"tensor", owner_name(*plan.graph, *block)},
                    {"bytes", block->bytes},
                    {"from_step", index_of(block->first)},
                    {"to_step", index_of(block->last)}});
  }
  return rows;
}

Json moved_json(const StepPlan& plan) {
  const Graph& graph = *plan.graph;
  Json rows = Json::array();
  for (std::size_t s = 0; s < plan.schedule.steps.size(); ++s) {
    const auto* offload = std::get_if<Offload>(&plan.schedule.steps[s].action);
    if (offload != nullptr && lms::may_move(graph, offload->tensor)) {
      rows.push_back({{"tensor", graph.info(offload->tensor).name},
                      {"bytes", graph.info(offload->tensor).desc.bytes()},
                      {"at_step", s}});
    }
  }
  return rows;
}

}  // namespace

Json memory_profile_json(const StepPlan& plan, const Timeline& timeline) {
  const std::vector<std::size_t> live = live_bytes(plan);
  Json steps = Json::array();
  for (std::size_t s = 0; s < std::min(live.size(), timeline.size()); ++s) {
    steps.push_back({{"start", timeline[s].start}, {"bytes", live[s]}});
  }
  const auto peak = static_cast<std::size_t>(std::ranges::max_element(live) - live.begin());
  return {{"arena_bytes", plan.memory.device_bytes},
          {"peak_step", peak},
          {"steps", steps},
          {"biggest", biggest_at(plan, peak)},
          {"moved", moved_json(plan)}};
}

}  // namespace cnn::bench
