#pragma once

#include <memory>
#include <string_view>
#include <vector>

#include "layers/passes/prologue.h"
#include "runtime/cpu/device.h"
#include "runtime/executor.h"
#include "runtime/kernel.h"
#include "tests/support/host_tensor.h"

namespace cnn::tests {

// Runs a graph on the CPU device as the program does: layout pass, plan, executor. Parameters,
// state and inputs start with fill_by_name()'s values, as in an Interpreter.
class RunningGraph {
 public:
  // table: its fallback is the reference loops, and it must outlive this object. image: the layout
  // of images.
  RunningGraph(const Graph& graph, const KernelTable& table, Layout image);
  // Takes a graph with settled layouts, sets the variables and then runs the prologue once.
  RunningGraph(const layers::PrologueSplit& divided, const KernelTable& table);

  void prepare();  // runs the prologue
  void run();
  // Returns plain tensors in the order of the graph's outputs.
  std::span<const TensorView> results() const { return executor_->results(); }
  HostTensor variable(std::string_view name) const;  // plain; throws if there is no such variable
  void write(std::string_view name, const TensorView& plain_values);
  const Graph& planned() const { return *executor_->plan().graph; }
  Executor& executor() { return *executor_; }

 private:
  void fill(const Graph& graph);
  TensorView storage_of(std::string_view name) const;
  std::unique_ptr<Executor> executor_of(StepPlan plan, Buffer& arena);

  const KernelTable& table_;
  CpuDevice device_;
  std::unique_ptr<Variables> variables_;
  Buffer storage_, host_storage_, arena_, prologue_arena_;
  std::vector<HostTensor> inputs_;
  std::unique_ptr<Executor> executor_, prologue_;
};

}  // namespace cnn::tests
