#include <algorithm>
#include <map>
#include <optional>
#include <string>

#include "runtime/access.h"
#include "runtime/error.h"
#include "runtime/program.h"
#include "runtime/waits.h"

namespace cnn {
namespace {

// Something that steps read and write: one stay of a tensor or a workspace (a block of the plan), a
// variable, or the host copy of a tensor.
using Resource = std::size_t;

struct History {
  LaneSteps written = no_steps;  // only the latest write counts: it waited for those before
  LaneSteps touched = no_steps;
};

// Which resource held each byte of an arena last.
class Tenants {
 public:
  // Calls visit(resource) for all that had bytes of [begin, end), then hands them to `tenant`.
  template <class Visit>
  void replace(std::size_t begin, std::size_t end, Resource tenant, Visit visit) {
    cut(begin);
    cut(end);
    const auto from = segments_.lower_bound(begin);
    const auto to = segments_.lower_bound(end);
    for (auto segment = from; segment != to; ++segment) {
      visit(segment->second.tenant);
    }
    segments_.erase(from, to);
    segments_[begin] = {end, tenant};
  }

 private:
  struct Segment {
    std::size_t end = 0;
    Resource tenant{};
  };

  void cut(std::size_t at) {
    auto segment = segments_.lower_bound(at);
    if (segment == segments_.begin()) {
      return;
    }
    --segment;
    if (segment->second.end > at) {
      segments_[at] = segment->second;
      segment->second.end = at;
    }
  }

  std::map<std::size_t, Segment> segments_;  // by begin; they never overlap
};

// Walks the steps once; every block enters and leaves the tenants once, so the time is n log n.
class Linker {
 public:
  Linker(const Graph& graph, const MemoryPlan& memory, std::size_t steps)
      : graph_(graph), memory_(memory), starting_(steps), starting_on_host_(steps) {
    history_.resize(memory.blocks.size() + 2 * graph.tensors().size());
    stay_.resize(graph.tensors().size());
    for (std::size_t b = 0; b < memory.blocks.size(); ++b) {
      starting_.at(index_of(memory.blocks[b].first)).push_back(b);
    }
    for (std::size_t b = 0; b < memory.host_blocks.size(); ++b) {
      starting_on_host_.at(index_of(memory.host_blocks[b].first)).push_back(b);
    }
  }

  void link(std::size_t index, Step& step) {
    need_ = no_steps;
    step_ = static_cast<std::int64_t>(index);
    lane_ = index_of_lane(step.lane);
    begin_blocks(index);
    for (const Access& access : accesses(graph_, step.action)) {
      use(resource_of(access.tensor), access.kind != Access::Kind::read);
    }
    if (const auto* offload = std::get_if<Offload>(&step.action)) {
      use(host_copy(offload->tensor), true);
    } else if (const auto* fetch = std::get_if<Fetch>(&step.action)) {
      use(host_copy(fetch->tensor), false);
    }
    step.after = waits(step.lane);
    knowledge_.add(step);
  }

 private:
  Resource variable(TensorId tensor) const { return memory_.blocks.size() + index_of(tensor); }
  Resource host_copy(TensorId tensor) const {
    return memory_.blocks.size() + graph_.tensors().size() + index_of(tensor);
  }

  Resource resource_of(TensorId tensor) const {
    if (is_persistent(graph_.info(tensor).role)) {
      return variable(tensor);
    }
    const auto stay = stay_[index_of(graph_.root_of(tensor))];
    if (!stay) {
      throw Error("link: the memory plan has no block for " + graph_.info(tensor).name +
                  " at step " + std::to_string(step_));
    }
    return *stay;
  }

  void begin_blocks(std::size_t step) {
    for (const std::size_t b : starting_[step]) {
      const Block& block = memory_.blocks[b];
      if (const auto* tensor = std::get_if<TensorId>(&block.owner)) {
        // An input that is overwritten in place ends here, but it is another tensor: no conflict.
        stay_[index_of(*tensor)] = b;
      }
      occupy(device_, block, b);
      if (std::holds_alternative<NodeId>(block.owner)) {
        use(b, true);
      }
    }
    for (const std::size_t b : starting_on_host_[step]) {
      const Block& block = memory_.host_blocks[b];
      occupy(host_, block, host_copy(std::get<TensorId>(block.owner)));
    }
  }

  void occupy(Tenants& arena, const Block& block, Resource tenant) {
    if (block.bytes == 0) {
      return;
    }
    arena.replace(block.offset, block.offset + aligned(block.bytes), tenant,
                  [this](Resource before) { merge(need_, history_[before].touched); });
  }

  void use(Resource resource, bool writes) {
    History& history = history_[resource];
    merge(need_, writes ? history.touched : history.written);
    history.touched[lane_] = step_;
    if (writes) {
      history.written = no_steps;
      history.written[lane_] = step_;
    }
  }

  // Drops what the lane knows anyway and what another wait implies.
  std::vector<StepId> waits(Lane lane) const {
    LaneSteps known = knowledge_.before(lane);
    known[lane_] = step_;
    std::vector<std::int64_t> wanted;
    for (std::size_t other = 0; other < lane_count; ++other) {
      if (need_[other] > known[other]) {
        wanted.push_back(need_[other]);
      }
    }
    // A later step may know of an earlier one, never the other way round.
    std::sort(wanted.rbegin(), wanted.rend());
    std::vector<StepId> result;
    for (const std::int64_t step : wanted) {
      const StepId id{static_cast<std::uint32_t>(step)};
      const LaneSteps& after = knowledge_.after(id);
      const bool implied = std::any_of(result.begin(), result.end(), [&](StepId taken) {
        const LaneSteps& other = knowledge_.after(taken);
        return std::equal(after.begin(), after.end(), other.begin(), std::less_equal<>());
      });
      if (!implied) {
        result.push_back(id);
      }
    }
    std::sort(result.begin(), result.end());
    return result;
  }

  const Graph& graph_;
  const MemoryPlan& memory_;
  std::vector<std::vector<std::size_t>> starting_, starting_on_host_;  // by StepId: blocks
  std::vector<History> history_;                                       // by Resource
  std::vector<std::optional<Resource>> stay_;                          // by TensorId: latest
  Tenants device_, host_;
  Knowledge knowledge_;
  LaneSteps need_ = no_steps;  // of the step being linked
  std::int64_t step_ = 0;
  std::size_t lane_ = 0;
};

}  // namespace

void link(const Graph& graph, Schedule& schedule, const MemoryPlan& memory) {
  Linker linker(graph, memory, schedule.steps.size());
  for (std::size_t s = 0; s < schedule.steps.size(); ++s) {
    linker.link(s, schedule.steps[s]);
  }
}

}  // namespace cnn
