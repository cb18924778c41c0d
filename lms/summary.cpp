#include "lms/summary.h"

#include <vector>

namespace cnn::lms {

Summary summarize(const Graph& graph, const Schedule& schedule) {
  Summary summary;
  std::vector<bool> is_output(graph.tensors().size()), left(graph.tensors().size());
  std::vector<bool> ran(graph.nodes().size());
  for (const Output& output : graph.outputs()) {
    is_output[index_of(output.tensor)] = true;
  }
  const auto moves = [&](TensorId tensor) {
    return graph.info(tensor).role == Role::activation && !is_output[index_of(tensor)];
  };
  for (const Step& step : schedule.steps) {
    if (const auto* offload = std::get_if<Offload>(&step.action)) {
      if (moves(offload->tensor)) {
        summary.swapped_tensors += left[index_of(offload->tensor)] ? 0 : 1;
        left[index_of(offload->tensor)] = true;
        ++summary.swap_outs;
        summary.bytes_out += graph.info(offload->tensor).desc.bytes();
      }
    } else if (const auto* fetch = std::get_if<Fetch>(&step.action)) {
      if (moves(fetch->tensor)) {
        ++summary.swap_ins;
        summary.bytes_in += graph.info(fetch->tensor).desc.bytes();
      }
    } else {
      const std::size_t node = index_of(std::get<Compute>(step.action).node);
      summary.recomputed += ran[node] ? 1 : 0;
      ran[node] = true;
    }
  }
  return summary;
}

}  // namespace cnn::lms
