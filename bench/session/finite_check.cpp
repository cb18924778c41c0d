#include "bench/session/finite_check.h"

#include <algorithm>

#include "layers/host_variable.h"
#include "runtime/schedule.h"

namespace cnn::bench {
namespace {

std::size_t place_of(Lane lane) { return static_cast<std::size_t>(lane); }

bool is_store(const Node& node) {
  return dynamic_cast<const layers::StoreVariable*>(node.op.get()) != nullptr;
}

}  // namespace

FiniteCheck::FiniteCheck(const StepPlan& plan, const Backend& backend)
    : backend_(backend), graph_(plan.graph), seen_(plan.graph->tensors().size()) {
  if (!backend.has_own_memory()) {
    return;
  }
  std::array<std::size_t, lane_count> bytes{};
  for (const Node& node : graph_->nodes()) {
    std::size_t& most = bytes.at(place_of(node.op->lane()));
    for (const std::vector<TensorId>* const operands : {&node.inputs, &node.outputs}) {
      for (const TensorId operand : *operands) {
        most = std::max(most, graph_->info(operand).desc.extent());
      }
    }
  }
  for (std::size_t lane = 0; lane < lane_count; ++lane) {
    if (bytes.at(lane) > 0) {
      copied_.at(lane) = backend.device->allocate_host(bytes.at(lane));
    }
  }
}

void FiniteCheck::begin(bool wanted) {
  wanted_ = wanted;
  work_.clear();
  seen_.assign(seen_.size(), false);
}

void FiniteCheck::enqueued(NodeId node, const Operands& operands, Lane lane, Stream& stream) {
  if (!wanted_) {
    return;
  }
  const Node& source = graph_->nodes()[index_of(node)];
  for (std::size_t i = 0; i < source.inputs.size(); ++i) {
    const TensorId input = source.inputs[i];
    const bool is_source = !graph_->producer(input) && !source.op->mutates(i);
    if (is_source && !seen_[index_of(input)]) {
      seen_[index_of(input)] = true;
      look_at(input, node, operands.in[i], lane, stream);
    }
  }
  for (std::size_t o = 0; o < source.outputs.size(); ++o) {
    look_at(source.outputs[o], node, operands.out[o], lane, stream);
  }
  for (std::size_t i = 0; i < source.inputs.size(); ++i) {
    if (source.op->mutates(i) && !is_store(source)) {  // what is stored was seen when it was made
      look_at(source.inputs[i], node, operands.in[i], lane, stream);
    }
  }
}

void FiniteCheck::look_at(TensorId tensor, NodeId node, const TensorView& view, Lane lane,
                          Stream& stream) {
  Work& work = work_.emplace_back(Work{.tensor = tensor, .node = node, .view = view});
  if (backend_.has_own_memory() && view.desc.shape.elements() > 0) {
    std::byte* const copy = copied_.at(place_of(lane)).data();
    stream.copy(copy, view.data, view.desc.extent());
    work.view.data = copy;
  }
  stream.host([&work] { work.count = count_non_finite(work.view); });
}

std::optional<NonFiniteTensor> FiniteCheck::first() const {
  const auto found = std::ranges::find_if(work_, [](const Work& work) { return work.count > 0; });
  if (found == work_.end()) {
    return std::nullopt;
  }
  NonFiniteTensor tensor = describe_non_finite(*graph_, found->tensor, Compute{found->node});
  tensor.count = found->count;
  tensor.elements = found->view.desc.shape.elements();
  return tensor;
}

}  // namespace cnn::bench
