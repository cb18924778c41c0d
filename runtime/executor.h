#pragma once

#include <array>
#include <cstddef>
#include <memory>
#include <span>
#include <vector>

#include "runtime/device.h"
#include "runtime/kernel.h"
#include "runtime/program.h"
#include "runtime/timeline.h"
#include "runtime/variables.h"

namespace cnn {

// Issues a program's steps on its lanes, step after step of training. Operands are resolved once, here;
// run() allocates nothing and synchronises with the host once, at its end.
class Executor {
 public:
  // arena: device bytes, at least program.plan.memory.device_bytes, 64-byte aligned; may be shared with
  // another executor that does not run at the same time. All references must outlive the executor.
  Executor(Program program, Device& device, Variables& variables, std::span<std::byte> arena);

  // inputs: host tensors in the order of graph.inputs(). Returns when the results are on the host.
  void run(std::span<const TensorView> inputs);
  // The same step with the time of every step taken; slower.
  Timeline profile(std::span<const TensorView> inputs);

  // Host copies of the graph's outputs, in the order of graph.outputs(); overwritten by every run.
  std::span<const TensorView> results() const;
  const StepPlan& plan() const;
  // The highest end of an operand or workspace in the arena that was handed to a kernel.
  std::size_t measured_peak_bytes() const;
};

}  // namespace cnn
