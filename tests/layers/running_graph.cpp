#include "tests/layers/running_graph.h"

#include <algorithm>
#include <cstring>
#include <string>

#include "layers/layout.h"
#include "runtime/error.h"
#include "tests/support/interpreter.h"
#include "tests/support/op_runner.h"

namespace cnn::tests {

RunningGraph::RunningGraph(const Graph& graph, const KernelTable& table, Layout image)
    : table_(table) {
  const std::shared_ptr<const Graph> laid_out = layers::assign_layouts(graph, table, image).graph;
  variables_ = std::make_unique<Variables>(*laid_out);
  storage_ = device_.allocate(std::max<std::size_t>(variables_->bytes(), 64));
  variables_->attach(storage_.data());
  fill(*laid_out);
  StepPlan plan = make_plan(laid_out, table);
  verify(plan);
  // NaN in every byte: what is read before it is written shows.
  arena_ = device_.allocate(std::max<std::size_t>(plan.memory.device_bytes, 64));
  std::memset(arena_.data(), 0xFF, arena_.bytes());
  executor_ = std::make_unique<Executor>(make_program(std::move(plan), table), device_, *variables_,
                                         std::span(arena_.data(), arena_.bytes()));
}

void RunningGraph::fill(const Graph& graph) {
  const DataType compute = graph.traits().compute;
  for (const Variable& variable : variables_->all()) {
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

HostTensor RunningGraph::variable(std::string_view name) const {
  const Variable* found = variables_->find(name);
  check(found != nullptr, "the graph has no variable " + std::string(name));
  return opened(table_, variables_->view(*found));
}

}  // namespace cnn::tests
