#include "runtime/access.h"

#include <variant>

namespace cnn {
namespace {

struct Collect {
  const Graph& graph;

  std::vector<Access> operator()(const Compute& compute) const {
    const Node& node = graph.nodes()[index_of(compute.node)];
    std::vector<Access> result;
    result.reserve(node.inputs.size() + node.outputs.size());
    for (std::size_t i = 0; i < node.inputs.size(); ++i) {
      const bool mutates = node.op->mutates(i);
      result.push_back({node.inputs[i], mutates ? Access::Kind::mutate : Access::Kind::read});
    }
    for (const TensorId output : node.outputs) {
      result.push_back({output, Access::Kind::define});
    }
    return result;
  }
  std::vector<Access> operator()(const Offload& offload) const {
    return {{offload.tensor, Access::Kind::read}};
  }
  std::vector<Access> operator()(const Fetch& fetch) const {
    return {{fetch.tensor, Access::Kind::define}};
  }
};

}  // namespace

std::vector<Access> accesses(const Graph& graph, const Action& action) {
  return std::visit(Collect{graph}, action);
}

}  // namespace cnn
