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

// Implements --check_finite_step: counts what is not finite in each tensor of one step, right after
// the node that reads or writes it and before its bytes are used for something else. Inputs and
// variables count where a node first reads them, all others where they are written.
class FiniteCheck final : public NodeObserver {
 public:
  // plan: of the step, or any other plan of its graph. The backend must outlive it.
  FiniteCheck(const StepPlan& plan, const Backend& backend);

  // Before each step. wanted: checks this one.
  void begin(bool wanted);
  void enqueued(NodeId node, const Operands& operands, Lane lane, Stream& stream) override;

  // Whether the latest step was checked.
  bool has_checked() const { return wanted_; }
  // The first tensor of the latest step that is not finite, in the order in which nodes were
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
  std::array<Buffer, lane_count> copied_;  // on the host, where it does not see the device's memory
  bool wanted_ = false;
  std::vector<bool> seen_;  // by TensorId: inputs and variables
  std::deque<Work> work_;   // streams refer to elements while more are added
};

}  // namespace cnn::bench
