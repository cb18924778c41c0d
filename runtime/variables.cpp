#include "runtime/variables.h"

#include "runtime/access.h"
#include "runtime/error.h"
#include "runtime/memory_plan.h"

namespace cnn {
namespace {

// Returns, by TensorId, the tensors that nodes touch, all of them in the copy lanes.
std::vector<bool> touched_by_copies_alone(const Graph& graph) {
  std::vector<bool> by_copies(graph.tensors().size()), by_others(graph.tensors().size());
  for (const Node& node : graph.nodes()) {
    const Lane lane = node.op->lane();
    const bool copies = lane == Lane::copy_in || lane == Lane::copy_out;
    for (const TensorId input : node.inputs) {
      (copies ? by_copies : by_others)[index_of(input)] = true;
    }
  }
  for (std::size_t t = 0; t < by_copies.size(); ++t) {
    by_copies[t] = by_copies[t] && !by_others[t];
  }
  return by_copies;
}

}  // namespace

Variables::Variables(const Graph& graph, const Graph* more) {
  const std::vector<bool> on_host = touched_by_copies_alone(graph);
  for (std::size_t t = 0; t < on_host.size(); ++t) {
    const TensorInfo& info = graph.tensors()[t];
    if (is_persistent(info.role)) {
      check(find(info.name) == nullptr,
            "two variables are called " + info.name + ": give each its own name");
      take(info, on_host[t]);
    }
  }
  if (more == nullptr) {
    return;
  }
  const std::vector<bool> more_on_host = touched_by_copies_alone(*more);
  for (std::size_t t = 0; t < more_on_host.size(); ++t) {
    const TensorInfo& info = more->tensors()[t];
    const Variable* known = find(info.name);
    if (!is_persistent(info.role)) {
      continue;
    }
    check(known == nullptr || known->info.desc == info.desc,
          "two graphs that share " + info.name + " lay it out differently");
    check(known == nullptr || known->on_host == more_on_host[t],
          "one graph has " + info.name + " on the host, another on the device");
    if (known == nullptr) {
      take(info, more_on_host[t]);
    }
  }
}

void Variables::take(const TensorInfo& info, bool on_host) {
  std::size_t& end = on_host ? host_bytes_ : bytes_;
  index_.emplace(info.name, variables_.size());
  variables_.push_back({.info = info, .offset = end, .on_host = on_host});
  end += aligned(info.desc.bytes());
}

const Variable* Variables::find(std::string_view name) const {
  const auto found = index_.find(name);
  return found == index_.end() ? nullptr : &variables_[found->second];
}

TensorView Variables::view(const Variable& variable) const {
  std::byte* const storage = variable.on_host ? host_storage_ : storage_;
  check(storage != nullptr, "the variables have no storage yet: call attach() first");
  return {.desc = variable.info.desc, .data = storage + variable.offset};
}

TensorView Variables::view(const TensorInfo& info) const {
  const Variable* variable = find(info.name);
  if (variable == nullptr) {
    throw Error("there is no variable " + info.name);
  }
  if (variable->info.desc != info.desc) {
    throw Error("variable " + info.name + " is " + to_string(variable->info.desc) +
                ", but the graph expects " + to_string(info.desc));
  }
  return view(*variable);
}

}  // namespace cnn
