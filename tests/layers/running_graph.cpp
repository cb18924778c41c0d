#include "tests/layers/running_graph.h"

#include <algorithm>
#include <cstring>
#include <string>

#include "layers/passes/layout.h"
#include "runtime/error.h"
#include "tests/support/interpreter.h"
#include "tests/support/op_runner.h"

namespace cnn::tests {

RunningGraph::RunningGraph(const Graph& graph, const KernelTable& table, Layout image)
    : RunningGraph({.step = layers::assign_layouts(graph, table, image).graph, .prologue = nullptr},
                   table) {}

RunningGraph::RunningGraph(const layers::PrologueSplit& divided, const KernelTable& table)
    : table_(table) {
  variables_ = std::make_unique<Variables>(*divided.step);
  storage_ = device_.allocate(std::max<std::size_t>(variables_->bytes(), 64));
  std::memset(storage_.data(), 0xFF, storage_.bytes());
  host_storage_ = device_.allocate_host(std::max<std::size_t>(variables_->host_bytes(), 64));
  std::memset(host_storage_.data(), 0xFF, host_storage_.bytes());
  variables_->attach(storage_.data(), host_storage_.data());
  fill(*divided.step);
  executor_ = executor_of(make_plan(divided.step, table), arena_);
  if (divided.prologue) {
    prologue_ = executor_of(make_plan(divided.prologue, table), prologue_arena_);
  }
  prepare();
}

std::unique_ptr<Executor> RunningGraph::executor_of(StepPlan plan, Buffer& arena) {
  verify(plan);
  // NaN in every byte reveals a read before the first write.
  arena = device_.allocate(std::max<std::size_t>(plan.memory.device_bytes, 64));
  std::memset(arena.data(), 0xFF, arena.bytes());
  return std::make_unique<Executor>(make_program(std::move(plan), table_), device_, *variables_,
                                    std::span(arena.data(), arena.bytes()));
}

void RunningGraph::prepare() {
  if (prologue_) {
    prologue_->run({});
  }
}

void RunningGraph::fill(const Graph& graph) {
  const DataType compute = graph.traits().compute;
  for (const Variable& variable : variables_->all()) {
    if (variable.info.role == Role::derived) {
      continue;
    }
    HostTensor values(plain(variable.info.desc));
    fill_by_name(variable.info, compute, 1, values.view());
    const HostTensor ready = stored(table_, values.view(), variable.info.desc);
    std::memcpy(variables_->view(variable).data, ready.view().data, ready.desc().bytes());
  }
  for (const TensorId id : graph.inputs()) {
    const TensorInfo& info = graph.info(id);
    HostTensor values(plain(info.desc));
    fill_by_name(info, compute, 1, values.view());
    inputs_.push_back(stored(table_, values.view(), info.desc));
  }
}

void RunningGraph::run() {
  std::vector<TensorView> inputs;
  for (const HostTensor& input : inputs_) {
    inputs.push_back(input.view());
  }
  executor_->run(inputs);
}

TensorView RunningGraph::storage_of(std::string_view name) const {
  const Variable* found = variables_->find(name);
  check(found != nullptr, "the graph has no variable " + std::string(name));
  return variables_->view(*found);
}

HostTensor RunningGraph::variable(std::string_view name) const {
  return opened(table_, storage_of(name));
}

void RunningGraph::write(std::string_view name, const TensorView& plain_values) {
  const TensorView to = storage_of(name);
  const HostTensor ready = stored(table_, plain_values, to.desc);
  std::memcpy(to.data, ready.view().data, ready.desc().bytes());
}

}  // namespace cnn::tests
