#include "runtime/block_lifetimes.h"

#include <algorithm>

namespace cnn {
namespace {

constexpr std::size_t compute_lane = index_of_lane(Lane::compute);

}  // namespace

void SyncPoints::add(std::size_t at, const VectorClock& known) {
  for (std::size_t lane = 0; lane < lane_count; ++lane) {
    const std::int64_t before = met_[lane].empty() ? -1 : met_[lane].back().first;
    if (known[lane] > before) {
      met_[lane].emplace_back(known[lane], at);
    }
  }
}

std::size_t SyncPoints::first(std::size_t lane, std::int64_t step, std::size_t never) const {
  const auto found =
      std::lower_bound(met_[lane].begin(), met_[lane].end(), step,
                       [](const auto& meeting, std::int64_t s) { return meeting.first < s; });
  return found == met_[lane].end() ? never : found->second;
}

BlockLifetimes::BlockLifetimes(const Graph& graph, const Schedule& schedule)
    : steps_(schedule.steps) {
  DataOrder order(graph);
  HappensBefore happens_before;
  known_.reserve(steps_.size());
  for (std::size_t s = 0; s < steps_.size(); ++s) {
    const VectorClock given = given_waits(schedule, s);
    VectorClock waits = order.needs(s, steps_[s]);
    merge(waits, given);
    known_.push_back(happens_before.add(steps_[s].lane, waits));
    asked_.add(s, given);
    if (steps_[s].lane == Lane::compute) {
      met_.add(s, known_.back());
    }
  }
  find_swaps(graph);
}

void BlockLifetimes::find_swaps(const Graph& graph) {
  std::vector<bool> is_output(graph.tensors().size());
  for (const Output& output : graph.outputs()) {
    is_output[index_of(output.tensor)] = true;
  }
  std::vector<std::size_t> fetched(graph.tensors().size(), steps_.size());  // after this step
  std::vector<std::size_t> loaded = fetched;
  back_.resize(steps_.size());
  for (std::size_t s = steps_.size(); s-- > 0;) {
    if (const auto* fetch = std::get_if<Fetch>(&steps_[s].action)) {
      fetched[index_of(fetch->tensor)] = s;
    } else if (const auto* offload = std::get_if<Offload>(&steps_[s].action)) {
      const std::size_t back = fetched[index_of(offload->tensor)];
      if (!is_output[index_of(offload->tensor)] || back < steps_.size()) {
        back_[s] = back;
      }
    } else if (const auto* load = std::get_if<Load>(&steps_[s].action)) {
      loaded[index_of(load->tensor)] = s;
    } else if (const auto* store = std::get_if<Store>(&steps_[s].action)) {
      back_[s] = loaded[index_of(store->tensor)];
    }
  }
}

// Returns the first step that a wait of the caller orders after step `last`, which moved bytes
// away, unless they are back before it; else the step after `last`.
std::size_t BlockLifetimes::asked_end(std::size_t last) const {
  const std::size_t request = asked_.first(index_of_lane(steps_[last].lane),
                                           static_cast<std::int64_t>(last), steps_.size());
  return request <= *back_[last] ? std::max(request, last + 1) : last + 1;
}

// Returns the last step for which bytes stay reserved that step `last` touches last.
std::size_t BlockLifetimes::end(std::size_t last, const VectorClock& touched) const {
  std::size_t free = last + 1;
  for (std::size_t lane = 0; lane < lane_count; ++lane) {
    if (lane != compute_lane && touched[lane] >= 0) {
      free = std::max(free, met_.first(lane, touched[lane], steps_.size()));
    }
  }
  return free - 1;
}

StepId BlockLifetimes::of(const LiveInterval& interval) const {
  const std::size_t last = index_of(interval.last);
  const std::optional<std::size_t> back = back_[last];
  VectorClock touched = no_steps;
  for (const StepId step : interval.touched_by) {
    if (!back || step != interval.last) {
      touched[index_of_lane(steps_[index_of(step)].lane)] =
          static_cast<std::int64_t>(index_of(step));
    }
  }
  std::size_t result = end(last, touched);
  if (back) {
    result = std::max(result, asked_end(last) - 1);
  }
  return StepId{static_cast<std::uint32_t>(result)};
}

StepId BlockLifetimes::of_workspace(StepId step) const {
  VectorClock touched = no_steps;
  touched[index_of_lane(steps_[index_of(step)].lane)] = static_cast<std::int64_t>(index_of(step));
  return StepId{static_cast<std::uint32_t>(end(index_of(step), touched))};
}

StepId BlockLifetimes::of_stored(StepId store) const {
  return StepId{static_cast<std::uint32_t>(asked_end(index_of(store)) - 1)};
}

bool BlockLifetimes::may_reuse_in_place(const LiveInterval& interval) const {
  const VectorClock& known = known_[index_of(interval.last)];
  return steps_[index_of(interval.last)].lane != Lane::compute ||
         std::all_of(interval.touched_by.begin(), interval.touched_by.end(), [&](StepId step) {
           const std::size_t lane = index_of_lane(steps_[index_of(step)].lane);
           return lane == compute_lane || static_cast<std::int64_t>(index_of(step)) <= known[lane];
         });
}

}  // namespace cnn
