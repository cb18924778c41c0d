#include "runtime/liveness.h"

#include <optional>
#include <string>

#include "runtime/access.h"
#include "runtime/error.h"

namespace cnn {
namespace {

class Walk {
 public:
  explicit Walk(const Graph& graph)
      : graph_(graph),
        current_(graph.tensors().size()),
        made_(graph.tensors().size()),
        on_host_(graph.tensors().size()) {
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
    }
  }

  std::vector<Residency> stays() { return std::move(stays_); }

 private:
  void touch(StepId step, const Action& action, const Access& access) {
    const bool shares = graph_.shares_bytes(access.tensor);
    if (shares && !std::holds_alternative<Compute>(action)) {
      fail(step, action, "moves bytes that other tensors share");
    }
    const TensorId root = graph_.root_of(access.tensor);
    auto& current = current_[index_of(root)];
    if (access.kind == Access::Kind::define) {
      if (std::holds_alternative<Fetch>(action) && !on_host_[index_of(access.tensor)]) {
        fail(step, action, "has no copy on the host to fetch");
      }
      made_[index_of(access.tensor)] = true;
      if (!shares || !current) {
        current = stays_.size();
        stays_.push_back({.tensor = root, .first = step, .last = step, .touched_by = {step}});
        return;
      }
    }
    if (!current || !made_[index_of(access.tensor)]) {
      fail(step, action,
           "uses " + graph_.info(access.tensor).name + ", which is not on the device");
    }
    Residency& stay = stays_[*current];
    if (stay.last != step) {  // an input may be given twice
      stay.touched_by.push_back(step);
    }
    stay.last = step;
  }

  [[noreturn]] void fail(StepId step, const Action& action, const std::string& what) const {
    throw Error("step " + std::to_string(index_of(step)) + " (" + to_string(graph_, action) + ") " +
                what);
  }

  const Graph& graph_;
  std::vector<std::optional<std::size_t>> current_;  // by TensorId of roots: place in stays_
  std::vector<bool> made_;                           // by TensorId: has been defined
  std::vector<bool> on_host_;                        // by TensorId
  std::vector<Residency> stays_;
};

}  // namespace

std::vector<Residency> residencies(const Graph& graph, const Schedule& schedule) {
  Walk walk(graph);
  for (std::size_t s = 0; s < schedule.steps.size(); ++s) {
    walk.step(StepId{static_cast<std::uint32_t>(s)}, schedule.steps[s].action);
  }
  return walk.stays();
}

}  // namespace cnn
