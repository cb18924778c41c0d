#include "runtime/access.h"

namespace cnn {

std::vector<Access> accesses(const Graph& graph, const Action& action) {
  std::vector<Access> result;
  for_each_access(graph, action, [&](const Access& access) { result.push_back(access); });
  return result;
}

}  // namespace cnn
