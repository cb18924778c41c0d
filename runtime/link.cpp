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

// A block of the plan: an interval of a tensor, a workspace, or a swapped tensor on the host.
using BlockNumber = std::size_t;

// Records which block held each byte of an arena last.
class LastOccupants {
 public:
  // Calls visit(occupant) for every block that held bytes of [begin, end), then assigns them to
  // `occupant`.
  template <class Visit>
  void replace(std::size_t begin, std::size_t end, BlockNumber occupant, Visit visit) {
    cut(begin);
    cut(end);
    const auto from = segments_.lower_bound(begin);
    const auto to = segments_.lower_bound(end);
    for (auto segment = from; segment != to; ++segment) {
      visit(segment->second.occupant);
    }
    segments_.erase(from, to);
    segments_[begin] = {end, occupant};
  }

 private:
  struct Segment {
    std::size_t end = 0;
    BlockNumber occupant{};
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

// An arena with the latest steps that touched each of its blocks.
struct Arena {
  explicit Arena(const std::vector<Block>& all) : blocks(all), touched(all.size(), no_steps) {}

  const std::vector<Block>& blocks;
  std::vector<VectorClock> touched;  // by block
  LastOccupants last_occupants;
};

// Visits the steps once; every block enters and leaves the last_occupants once, so the time is O(n
// log n).
class Linker {
 public:
  Linker(const Graph& graph, const MemoryPlan& memory, Schedule& schedule)
      : graph_(graph),
        schedule_(schedule),
        device_(memory.blocks),
        host_(memory.host_blocks),
        starting_(by_start(memory.blocks)),
        starting_on_host_(by_start(memory.host_blocks)),
        data_(graph),
        interval_(graph.tensors().size()),
        host_interval_(graph.tensors().size()) {}

  void link(std::size_t index) {
    Step& step = schedule_.steps[index];
    step_ = static_cast<std::int64_t>(index);
    lane_ = index_of_lane(step.lane);
    need_ = data_.needs(index, step);
    merge(need_, given_waits(schedule_, index));
    begin_blocks(index);
    touch_blocks(step.action);
    step.after = waits(step.lane);
    happens_before_.add(step);
  }

 private:
  std::vector<std::vector<std::size_t>> by_start(const std::vector<Block>& blocks) const {
    std::vector<std::vector<std::size_t>> starting(schedule_.steps.size());
    for (std::size_t b = 0; b < blocks.size(); ++b) {
      starting.at(index_of(blocks[b].first)).push_back(b);
    }
    return starting;
  }

  void begin_blocks(std::size_t step) {
    for (const std::size_t b : starting_[step]) {
      if (const auto* tensor = std::get_if<TensorId>(&device_.blocks[b].owner)) {
        // An input overwritten in place ends here, as another tensor: this is not a conflict.
        interval_[index_of(*tensor)] = b;
      }
      occupy(device_, b);
    }
    for (const std::size_t b : starting_on_host_[step]) {
      host_interval_[index_of(std::get<TensorId>(host_.blocks[b].owner))] = b;
      occupy(host_, b);
    }
  }

  void occupy(Arena& arena, std::size_t b) {
    const Block& block = arena.blocks[b];
    if (block.bytes > 0) {
      arena.last_occupants.replace(
          block.offset, block.offset + aligned(block.bytes), b,
          [&](BlockNumber before) { merge(need_, arena.touched[before]); });
    }
    arena.touched[b][lane_] = step_;  // by the step in which the block begins
  }

  void touch_blocks(const Action& action) {
    for_each_access(graph_, action, [&](const Access& access) {
      if (!is_persistent(graph_.info(access.tensor).role)) {
        device_.touched[stay_of(access.tensor)][lane_] = step_;
      }
      const auto on_host = host_interval_[index_of(access.tensor)];
      if (on_host && !std::holds_alternative<Compute>(action)) {
        host_.touched[*on_host][lane_] = step_;
      }
    });
    if (const auto moved = moved_by_disk(action)) {
      host_.touched[host_interval_[index_of(*moved)].value()][lane_] = step_;
    }
  }

  std::size_t stay_of(TensorId tensor) const {
    const auto interval = interval_[index_of(graph_.root_of(tensor))];
    if (!interval) {
      throw Error("link: the memory plan has no block for " + graph_.info(tensor).name +
                  " at step " + std::to_string(step_));
    }
    return *interval;
  }

  // Drops waits that the lane's clock or another wait implies.
  std::vector<StepId> waits(Lane lane) const {
    VectorClock known = happens_before_.before(lane);
    known[lane_] = step_;
    std::vector<std::int64_t> wanted;
    for (std::size_t other = 0; other < lane_count; ++other) {
      if (need_[other] > known[other]) {
        wanted.push_back(need_[other]);
      }
    }
    // A later step may know an earlier one, but not the reverse.
    std::sort(wanted.rbegin(), wanted.rend());
    std::vector<StepId> result;
    for (const std::int64_t step : wanted) {
      const StepId id{static_cast<std::uint32_t>(step)};
      const VectorClock& after = happens_before_.after(id);
      const bool implied = std::any_of(result.begin(), result.end(), [&](StepId taken) {
        return happened_before(after, happens_before_.after(taken));
      });
      if (!implied) {
        result.push_back(id);
      }
    }
    std::sort(result.begin(), result.end());
    return result;
  }

  const Graph& graph_;
  Schedule& schedule_;
  Arena device_, host_;
  std::vector<std::vector<std::size_t>> starting_, starting_on_host_;  // by StepId: blocks
  DataOrder data_;
  std::vector<std::optional<std::size_t>> interval_,
      host_interval_;  // by TensorId: the latest block
  HappensBefore happens_before_;
  VectorClock need_ = no_steps;  // of the step being linked
  std::int64_t step_ = 0;
  std::size_t lane_ = 0;
};

}  // namespace

void link(const Graph& graph, Schedule& schedule, const MemoryPlan& memory) {
  Linker linker(graph, memory, schedule);
  for (std::size_t s = 0; s < schedule.steps.size(); ++s) {
    linker.link(s);
  }
}

}  // namespace cnn
