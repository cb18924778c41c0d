#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <vector>

#include "bench/machine/backend.h"
#include "runtime/node_observer.h"
#include "runtime/non_finite.h"
#include "runtime/program.h"

namespace cnn::bench {

// Implements --check_finite_step: counts non-finite elements of each tensor of one step, right
// after the node that reads or writes it and before its bytes are reused. Inputs and variables are
// counted at their first read, all others when they are written.
class FiniteCheck final : public NodeObserver {
 public:
  // plan: of the step, or any other plan of its graph. The backend must outlive it.
  FiniteCheck(const StepPlan& plan, const Backend& backend);

  // Call before each step. wanted: checks this step.
  void begin(bool wanted);
  void enqueued(NodeId node, const Operands& operands, Lane lane, Stream& stream) override;

  // Returns whether the latest step was checked.
  bool has_checked() const { return wanted_; }
  // Returns the first non-finite tensor of the latest step, in the order in which nodes were
  // enqueued; nothing if all are finite, or the step was not checked.
  std::optional<NonFiniteTensor> first() const;

 private:
  struct Work {
    TensorId tensor{};
    NodeId node{};
    TensorView view;
    std::int64_t count = 0;
  };

  void look_at(TensorId tensor, NodeId node, const TensorView& view, Lane lane, Stream& stream);

  const Backend& backend_;
  std::shared_ptr<const Graph> graph_;
  std::array<Buffer, lane_count> copied_;  // on the host, if it cannot see the device's memory
  bool wanted_ = false;
  std::vector<bool> seen_;  // by TensorId: inputs and variables
  std::deque<Work> work_;   // streams hold references to elements while more are added
};

}  // namespace cnn::bench
