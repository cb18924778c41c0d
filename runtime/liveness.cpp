#include "runtime/liveness.h"

#include <algorithm>
#include <optional>
#include <string>

#include "runtime/access.h"
#include "runtime/error.h"

namespace cnn {
namespace {

// Finds, for tensors that share bytes, the steps that write one of them while no byte of the others
// is read before it is rewritten. There an earlier interval ends, and a new one begins.
class Redefinitions {
 public:
  Redefinitions(const Graph& graph, const Schedule& schedule)
      : graph_(graph),
        redefined_(schedule.steps.size()),
        next_read_(graph.tensors().size()),
        awaited_(graph.tensors().size()) {
    if (!may_start_again(schedule)) {
      return;
    }
    for (std::size_t s = schedule.steps.size(); s-- > 0;) {
      step(s, schedule.steps[s].action);
    }
  }

  bool at(StepId step, TensorId root) const {
    const std::vector<TensorId>& roots = redefined_[index_of(step)];
    return std::ranges::find(roots, root) != roots.end();
  }

 private:
  bool may_start_again(const Schedule& schedule) const {
    std::vector<bool> ran(graph_.nodes().size()), fetched(graph_.tensors().size());
    bool again = false;
    for (const Step& step : schedule.steps) {
      if (const auto* compute = std::get_if<Compute>(&step.action)) {
        again = again || ran[index_of(compute->node)];
        ran[index_of(compute->node)] = true;
      } else if (const auto* fetch = std::get_if<Fetch>(&step.action)) {
        again = again || fetched[index_of(fetch->tensor)];
        fetched[index_of(fetch->tensor)] = true;
      }
    }
    return again && std::ranges::any_of(graph_.tensors(), [](const TensorInfo& info) {
             return info.alias.has_value();
           });
  }

  // Visits steps from last to first, so a step's writes come before its reads.
  void step(std::size_t s, const Action& action) {
    const std::vector<Access> all = accesses(graph_, action);
    for (auto access = all.rbegin(); access != all.rend(); ++access) {
      if (!graph_.shares_bytes(access->tensor)) {
        continue;
      }
      const TensorId root = graph_.root_of(access->tensor);
      if (access->kind != Access::Kind::define) {
        set_read(access->tensor, root, true);
        std::erase(redefined_[s], root);  // it still belongs to the earlier interval
        continue;
      }
      if (std::holds_alternative<Fetch>(action)) {
        await_nothing_of(root);
      }
      set_read(access->tensor, root, false);
      if (awaited_[index_of(root)] == 0) {
        redefined_[s].push_back(root);
      }
    }
  }

  void set_read(TensorId tensor, TensorId root, bool read) {
    awaited_[index_of(root)] += static_cast<int>(read) - static_cast<int>(next_read(tensor));
    next_read_[index_of(tensor)] = read;
  }
  bool next_read(TensorId tensor) const { return next_read_[index_of(tensor)]; }

  void await_nothing_of(TensorId root) {
    for (std::size_t t = 0; t < next_read_.size(); ++t) {
      const TensorId tensor{static_cast<std::uint32_t>(t)};
      if (graph_.root_of(tensor) == root) {
        next_read_[t] = false;
      }
    }
    awaited_[index_of(root)] = 0;
  }

  const Graph& graph_;
  std::vector<std::vector<TensorId>> redefined_;  // by StepId: roots
  std::vector<bool> next_read_;                   // by TensorId: the next access is a read
  std::vector<int> awaited_;                      // by TensorId of roots: number of such tensors
};

class LivenessScan {
 public:
  LivenessScan(const Graph& graph, const Schedule& schedule)
      : graph_(graph),
        redefined_(graph, schedule),
        current_(graph.tensors().size()),
        made_(graph.tensors().size()),
        on_host_(graph.tensors().size()),
        on_disk_(graph.tensors().size()) {
    for (const TensorId input : graph.inputs()) {
      on_host_[index_of(input)] = true;
    }
  }

  void step(StepId step, const Action& action) {
    for_each_access(graph_, action, [&](const Access& access) {
      if (!is_persistent(graph_.info(access.tensor).role)) {
        touch(step, action, access);
      } else if (std::holds_alternative<Fetch>(action)) {
        fail(step, action, "is a variable, which never leaves the device");
      }
    });
    if (const auto* offload = std::get_if<Offload>(&action)) {
      on_host_[index_of(offload->tensor)] = true;
      current_[index_of(offload->tensor)].reset();
    } else if (const auto* store = std::get_if<Store>(&action)) {
      move(step, action, on_host_[index_of(store->tensor)], on_disk_[index_of(store->tensor)]);
      on_host_[index_of(store->tensor)] = false;
    } else if (const auto* load = std::get_if<Load>(&action)) {
      move(step, action, on_disk_[index_of(load->tensor)], on_host_[index_of(load->tensor)]);
    }
  }

  std::vector<LiveInterval> intervals() { return std::move(intervals_); }

 private:
  void move(StepId step, const Action& action, bool is_there,
            std::vector<bool>::reference arrives) {
    if (!is_there) {
      fail(step, action, "has no copy to move");
    }
    arrives = true;
  }

  void touch(StepId step, const Action& action, const Access& access) {
    const bool shares = graph_.shares_bytes(access.tensor);
    const TensorId root = graph_.root_of(access.tensor);
    if (root != access.tensor && !std::holds_alternative<Compute>(action)) {
      fail(step, action, "moves bytes that lie inside " + graph_.info(root).name);
    }
    auto& current = current_[index_of(root)];
    if (access.kind == Access::Kind::define) {
      if (std::holds_alternative<Fetch>(action) && !on_host_[index_of(access.tensor)]) {
        fail(step, action, "has no copy on the host to fetch");
      }
      made_[index_of(access.tensor)] = true;
      if (!shares || !current || redefined_.at(step, root)) {
        current = intervals_.size();
        intervals_.push_back({.tensor = root, .first = step, .last = step, .touched_by = {step}});
        return;
      }
    }
    if (!current || !made_[index_of(access.tensor)]) {
      fail(step, action,
           "uses " + graph_.info(access.tensor).name + ", which is not on the device");
    }
    LiveInterval& interval = intervals_[*current];
    if (interval.last != step) {  // an input may be given twice
      interval.touched_by.push_back(step);
    }
    interval.last = step;
  }

  [[noreturn]] void fail(StepId step, const Action& action, const std::string& what) const {
    throw Error("step " + std::to_string(index_of(step)) + " (" + to_string(graph_, action) + ") " +
                what);
  }

  const Graph& graph_;
  Redefinitions redefined_;
  std::vector<std::optional<std::size_t>> current_;  // by TensorId of roots: index in intervals_
  std::vector<bool> made_;                           // by TensorId: has been defined
  std::vector<bool> on_host_, on_disk_;              // by TensorId
  std::vector<LiveInterval> intervals_;
};

}  // namespace

std::vector<LiveInterval> live_intervals(const Graph& graph, const Schedule& schedule) {
  LivenessScan walk(graph, schedule);
  for (std::size_t s = 0; s < schedule.steps.size(); ++s) {
    walk.step(StepId{static_cast<std::uint32_t>(s)}, schedule.steps[s].action);
  }
  return walk.intervals();
}

}  // namespace cnn
