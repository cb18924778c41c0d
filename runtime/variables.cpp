#include "runtime/variables.h"

#include "runtime/access.h"
#include "runtime/error.h"
#include "runtime/memory_plan.h"

namespace cnn {

Variables::Variables(const Graph& graph, const Graph* more) {
  for (const TensorInfo& info : graph.tensors()) {
    if (is_persistent(info.role)) {
      check(find(info.name) == nullptr,
            "two variables are called " + info.name + ": give each its own name");
      take(info);
    }
  }
  if (more == nullptr) {
    return;
  }
  for (const TensorInfo& info : more->tensors()) {
    const Variable* known = find(info.name);
    if (!is_persistent(info.role)) {
      continue;
    }
    check(known == nullptr || known->info.desc == info.desc,
          "two graphs that share " + info.name + " lay it out differently");
    if (known == nullptr) {
      take(info);
    }
  }
}

void Variables::take(const TensorInfo& info) {
  index_.emplace(info.name, variables_.size());
  variables_.push_back({.info = info, .offset = bytes_});
  bytes_ += aligned(info.desc.bytes());
}

const Variable* Variables::find(std::string_view name) const {
  const auto found = index_.find(name);
  return found == index_.end() ? nullptr : &variables_[found->second];
}

TensorView Variables::view(const Variable& variable) const {
  check(storage_ != nullptr, "the variables have no storage yet: call attach() first");
  return {.desc = variable.info.desc, .data = storage_ + variable.offset};
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
