#include "runtime/waits.h"

#include <algorithm>
#include <functional>
#include <string>

#include "runtime/access.h"
#include "runtime/error.h"

namespace cnn {

void merge(VectorClock& into, const VectorClock& other) {
  for (std::size_t lane = 0; lane < lane_count; ++lane) {
    into[lane] = std::max(into[lane], other[lane]);
  }
}

bool happened_before(const VectorClock& earlier, const VectorClock& later) {
  return std::equal(earlier.begin(), earlier.end(), later.begin(), std::less_equal<>());
}

VectorClock given_waits(const Schedule& schedule, std::size_t step) {
  VectorClock waits = no_steps;
  for (const StepId wait : schedule.steps[step].after) {
    if (index_of(wait) >= step) {
      throw Error("step " + std::to_string(step) + " waits for step " +
                  std::to_string(index_of(wait)) + ", which does not come before it");
    }
    std::int64_t& latest = waits[index_of_lane(schedule.steps[index_of(wait)].lane)];
    latest = std::max(latest, static_cast<std::int64_t>(index_of(wait)));
  }
  return waits;
}

VectorClock HappensBefore::finish(Lane lane, const VectorClock& known) {
  VectorClock& finished = lanes_[index_of_lane(lane)];
  finished = known;
  finished[index_of_lane(lane)] = static_cast<std::int64_t>(after_.size());
  after_.push_back(finished);
  return known;
}

VectorClock HappensBefore::add(Lane lane, const VectorClock& waits) {
  VectorClock known = before(lane);
  for (const std::int64_t wait : waits) {
    if (wait >= 0 && wait < static_cast<std::int64_t>(after_.size())) {
      merge(known, after_[static_cast<std::size_t>(wait)]);
    }
  }
  return finish(lane, known);
}

VectorClock HappensBefore::add(const Step& step) {
  VectorClock known = before(step.lane);
  for (const StepId wait : step.after) {
    merge(known, after_.at(index_of(wait)));
  }
  return finish(step.lane, known);
}

DataOrder::DataOrder(const Graph& graph)
    : graph_(graph),
      device_(graph.tensors().size()),
      host_(graph.tensors().size()),
      disk_(graph.tensors().size()) {}

VectorClock DataOrder::needs(std::size_t index, const Step& step) {
  step_ = static_cast<std::int64_t>(index);
  lane_ = index_of_lane(step.lane);
  VectorClock need = no_steps;
  for_each_access(graph_, step.action, [&](const Access& access) {
    History& history = device_[index_of(graph_.root_of(access.tensor))];
    if (access.kind == Access::Kind::define && !graph_.shares_bytes(access.tensor)) {
      history = {};  // a new interval, in other bytes
    }
    use(history, access.kind != Access::Kind::read, need);
  });
  if (const auto* offload = std::get_if<Offload>(&step.action)) {
    use(host_[index_of(offload->tensor)], true, need);
  } else if (const auto* fetch = std::get_if<Fetch>(&step.action)) {
    use(host_[index_of(fetch->tensor)], false, need);
  } else if (const auto* store = std::get_if<Store>(&step.action)) {
    use(host_[index_of(store->tensor)], false, need);
    use(disk_[index_of(store->tensor)], true, need);
  } else if (const auto* load = std::get_if<Load>(&step.action)) {
    use(disk_[index_of(load->tensor)], false, need);
    use(host_[index_of(load->tensor)], true, need);
  }
  return need;
}

void DataOrder::use(History& history, bool writes, VectorClock& need) {
  merge(need, writes ? history.touched : history.written);
  history.touched[lane_] = step_;
  if (writes) {
    history.written = no_steps;
    history.written[lane_] = step_;
  }
}

}  // namespace cnn
