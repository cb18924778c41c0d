#include "runtime/verify_values.h"

#include <algorithm>
#include <map>
#include <optional>
#include <string>

#include "runtime/error.h"

namespace cnn {
namespace {

[[noreturn]] void fail(const std::string& what) { throw Error("wrong plan: " + what); }

class ValueVerifier {
 public:
  explicit ValueVerifier(const StepPlan& plan)
      : plan_(plan), graph_(*plan.graph), steps_(plan.schedule.steps) {}

  void check_specs() const {
    check(plan_.specs.size() == graph_.nodes().size(), "wrong plan: a node has no kernel spec");
    for (std::size_t n = 0; n < plan_.specs.size(); ++n) {
      const Node& node = graph_.nodes()[n];
      const auto agree = [&](TensorId tensor, const TensorDesc& desc) {
        return graph_.info(tensor).desc == desc;
      };
      if (!std::equal(node.inputs.begin(), node.inputs.end(), plan_.specs[n].in.begin(),
                      plan_.specs[n].in.end(), agree) ||
          !std::equal(node.outputs.begin(), node.outputs.end(), plan_.specs[n].out.begin(),
                      plan_.specs[n].out.end(), agree)) {
        fail("the kernel of " + name(n) + " takes " +
             to_string(Signature{plan_.specs[n].in, plan_.specs[n].out}) +
             ", the graph has other operands");
      }
    }
  }

  // Checks tensors inside other tensors: a node joins each to its root or takes it from there, no
  // two share bytes, and no node changes them in place.
  void check_parts() const {
    std::vector<bool> joined(graph_.tensors().size());
    for (const Node& node : graph_.nodes()) {
      for (std::size_t i = 0; i < node.inputs.size(); ++i) {
        if (node.op->mutates(i) && graph_.shares_bytes(node.inputs[i])) {
          fail(std::string(node.op->name()) + " changes " + name(node.inputs[i]) +
               ", which shares bytes with others");
        }
      }
      find_joined(node.inputs, node.outputs, joined);
      find_joined(node.outputs, node.inputs, joined);
    }
    std::map<TensorId, std::map<std::int64_t, TensorId>> parts;  // of a root, by first channel
    for (std::uint32_t t = 0; t < joined.size(); ++t) {
      const TensorInfo& info = graph_.info(TensorId{t});
      if (info.alias && !joined[t]) {
        fail(info.name + " lies inside " + name(info.alias->root) + ", but nothing makes it so");
      }
      if (info.alias &&
          !parts[info.alias->root].emplace(info.alias->channel_offset, TensorId{t}).second) {
        fail(info.name + " and another tensor lie at one place");
      }
    }
    for (const auto& [root, by_channel] : parts) {
      std::int64_t end = 0;
      for (const auto& [first, part] : by_channel) {
        if (first < end) {
          fail(name(part) + " shares bytes with another part of " + name(root));
        }
        end = first + graph_.info(part).desc.shape[1];
      }
    }
  }

  // Checks that every node runs, always on one lane, as a kernel holds state; a node that changes
  // tensors in place runs once.
  void check_nodes() const {
    std::vector<int> runs(graph_.nodes().size());
    std::vector<Lane> lanes(graph_.nodes().size());
    for (const Step& step : steps_) {
      if (const auto* compute = std::get_if<Compute>(&step.action)) {
        const std::size_t node = index_of(compute->node);
        if (++runs.at(node) > 1 && step.lane != lanes[node]) {
          fail(name(node) + " runs on the lanes " + std::string(name_of(lanes[node])) + " and " +
               std::string(name_of(step.lane)) + ", but its kernel holds state: use one");
        }
        lanes[node] = step.lane;
      }
    }
    for (std::size_t n = 0; n < runs.size(); ++n) {
      const Node& node = graph_.nodes()[n];
      bool mutates = false;
      for (std::size_t i = 0; i < node.inputs.size(); ++i) {
        mutates |= node.op->mutates(i);
      }
      if (runs[n] == 0 || (mutates && runs[n] > 1)) {
        fail(name(n) + " runs " + std::to_string(runs[n]) + " times");
      }
    }
  }

  // Checks versions: a tensor's version counts its in-place changes since it was written. Every
  // step must read the version that the graph's order implies: so a weight is never read after its
  // update, and a recomputation reads the inputs of the first computation.
  void check_versions() const {
    std::vector<int> total(graph_.tensors().size());
    std::vector<std::vector<int>> expected(graph_.nodes().size());  // by node and input
    for (std::size_t n = 0; n < graph_.nodes().size(); ++n) {
      const Node& node = graph_.nodes()[n];
      for (const TensorId input : node.inputs) {
        expected[n].push_back(total[index_of(input)]);
      }
      for (std::size_t i = 0; i < node.inputs.size(); ++i) {
        total[index_of(node.inputs[i])] += node.op->mutates(i) ? 1 : 0;
      }
    }
    std::vector<int> now(total.size());
    std::vector<int> host(total.size()), disk(total.size());
    std::vector<std::optional<int>> left(total.size());  // version at the last Offload
    for (std::size_t s = 0; s < steps_.size(); ++s) {
      if (const auto* compute = std::get_if<Compute>(&steps_[s].action)) {
        check_versions_of(id(s), expected[index_of(compute->node)], now);
      } else if (const auto* fetch = std::get_if<Fetch>(&steps_[s].action)) {
        now[index_of(fetch->tensor)] = host[index_of(fetch->tensor)];
      } else if (const auto* store = std::get_if<Store>(&steps_[s].action)) {
        disk[index_of(store->tensor)] = host[index_of(store->tensor)];
      } else if (const auto* load = std::get_if<Load>(&steps_[s].action)) {
        host[index_of(load->tensor)] = disk[index_of(load->tensor)];
      } else {
        const std::size_t tensor = index_of(std::get<Offload>(steps_[s].action).tensor);
        if (graph_.tensors()[tensor].role != Role::input) {  // an input stays as the host gave it
          host[tensor] = now[tensor];
        }
        left[tensor] = now[tensor];
      }
    }
    for (const Output& output : graph_.outputs()) {
      if (left[index_of(output.tensor)] != total[index_of(output.tensor)]) {
        fail("output " + output.name + " does not leave with its last value");
      }
    }
  }

  void check_versions_of(StepId step, const std::vector<int>& expected,
                         std::vector<int>& now) const {
    const auto& compute = std::get<Compute>(steps_[index_of(step)].action);
    const Node& node = graph_.nodes()[index_of(compute.node)];
    for (std::size_t i = 0; i < node.inputs.size(); ++i) {
      if (now[index_of(node.inputs[i])] != expected[i]) {
        fail(name(step) + " meets " + name(node.inputs[i]) + " after " +
             std::to_string(now[index_of(node.inputs[i])]) + " changes in place instead of " +
             std::to_string(expected[i]));
      }
    }
    for (std::size_t i = 0; i < node.inputs.size(); ++i) {
      now[index_of(node.inputs[i])] += node.op->mutates(i) ? 1 : 0;
    }
    for (const TensorId output : node.outputs) {
      now[index_of(output)] = 0;
    }
  }

 private:
  // Marks the tensors of one side of a node that lie inside a tensor of the other side.
  void find_joined(const std::vector<TensorId>& parts, const std::vector<TensorId>& roots,
                   std::vector<bool>& joined) const {
    for (const TensorId part : parts) {
      const auto& alias = graph_.info(part).alias;
      if (alias && std::ranges::find(roots, alias->root) != roots.end()) {
        joined[index_of(part)] = true;
      }
    }
  }

  std::string name(TensorId tensor) const { return graph_.info(tensor).name; }
  std::string name(StepId step) const {
    const std::size_t s = index_of(step);
    return "step " + std::to_string(s) + " (" + to_string(graph_, steps_[s].action) + ")";
  }
  std::string name(std::size_t node) const {
    return to_string(graph_, Compute{NodeId{static_cast<std::uint32_t>(node)}});
  }
  static StepId id(std::size_t step) { return StepId{static_cast<std::uint32_t>(step)}; }

  const StepPlan& plan_;
  const Graph& graph_;
  const std::vector<Step>& steps_;
};

}  // namespace

void verify_values(const StepPlan& plan) {
  const ValueVerifier verifier(plan);
  verifier.check_specs();
  verifier.check_parts();
  verifier.check_nodes();
  verifier.check_versions();
}

}  // namespace cnn
