#include "runtime/access.h"

namespace cnn {

std::optional<TensorId> moved_by_disk(const Action& action) {
  if (const auto* store = std::get_if<Store>(&action)) {
    return store->tensor;
  }
  const auto* load = std::get_if<Load>(&action);
  return load == nullptr ? std::nullopt : std::optional(load->tensor);
}

std::vector<Access> accesses(const Graph& graph, const Action& action) {
  std::vector<Access> result;
  for_each_access(graph, action, [&](const Access& access) { result.push_back(access); });
  return result;
}

}  // namespace cnn
