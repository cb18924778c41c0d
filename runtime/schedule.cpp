#include "runtime/schedule.h"

#include <algorithm>
#include <cstddef>
#include <tuple>

#include "runtime/access.h"

namespace cnn {
namespace {

// The place in the given order after whose node a moved node is placed, -1 for the front. A node
// that does not move is its own anchor.
using Anchor = std::ptrdiff_t;

bool is_update(const Graph& graph, const Node& node) {
  constexpr std::int64_t few = 4096;  // elements
  bool mutates = false;
  for (std::size_t i = 0; i < node.inputs.size(); ++i) {
    mutates |= node.op->mutates(i) && is_persistent(graph.info(node.inputs[i]).role);
  }
  // Larger outputs would only live longer if they came earlier, unless they replace an input.
  for (std::size_t o = 0; o < node.outputs.size(); ++o) {
    bool replaces = false;
    for (std::size_t i = 0; i < node.inputs.size(); ++i) {
      replaces |= node.op->may_overwrite(i, o);
    }
    mutates &= replaces || graph.info(node.outputs[o]).desc.shape.elements() <= few;
  }
  return mutates;
}

bool communicates(const Node& node) { return node.op->lane() == Lane::communicate; }

// Orders nodes; linear in the number of operands.
class Ordering {
 public:
  Ordering(const Graph& graph, std::span<const NodeId> order) : graph_(graph), order_(order) {
    updates_from_.assign(order.size(), -1);
    find_anchors();
    find_room_for_communication();
    find_anchors();  // now with the distance that communication needs
  }

  std::vector<NodeId> nodes() const {
    std::vector<std::tuple<Anchor, bool, std::size_t>> keys;
    for (std::size_t at = 0; at < anchors_.size(); ++at) {
      const bool moved = anchors_[at] != static_cast<Anchor>(at);
      keys.emplace_back(anchors_[at], moved, at);
    }
    std::sort(keys.begin(), keys.end());
    std::vector<NodeId> result;
    result.reserve(keys.size());
    for (const auto& key : keys) {
      result.push_back(order_[std::get<2>(key)]);
    }
    return result;
  }

 private:
  void find_anchors() {
    written_.assign(graph_.tensors().size(), -1);
    touched_.assign(graph_.tensors().size(), -1);
    delayed_.assign(graph_.tensors().size(), -1);
    anchors_.resize(order_.size());
    for (std::size_t at = 0; at < order_.size(); ++at) {
      const Node& node = node_at(at);
      const auto own = static_cast<Anchor>(at);
      const bool moves = is_update(graph_, node) || communicates(node);
      anchors_[at] = moves ? std::min(earliest(node), own) : own;
      remember(at);
    }
  }

  Anchor earliest(const Node& node) const {
    Anchor anchor = -1;
    for (std::size_t i = 0; i < node.inputs.size(); ++i) {
      const std::size_t tensor = index_of(node.inputs[i]);
      anchor = std::max(anchor, node.op->mutates(i) ? touched_[tensor] : written_[tensor]);
      if (!communicates(node)) {
        anchor = std::max(anchor, delayed_[tensor]);
      }
    }
    return anchor;
  }

  // An update right after its exchange would stall the compute lane by as much as links are slower
  // than the rest of the backward pass. The update follows the start of the last exchange instead,
  // so that it waits only when no other work is left.
  void find_room_for_communication() {
    const auto end = static_cast<Anchor>(order_.size());
    Anchor last = -1;
    for (std::size_t at = 0; at < order_.size(); ++at) {
      last = communicates(node_at(at)) ? std::max(last, anchors_[at]) : last;
    }
    for (std::size_t at = 0; at < order_.size(); ++at) {
      if (communicates(node_at(at))) {
        updates_from_[at] = anchors_[at] == last ? end : last;
      }
    }
  }

  void remember(std::size_t at) {
    const Anchor anchor = anchors_[at];
    for (const Access& access : accesses(graph_, Compute{order_[at]})) {
      const std::size_t tensor = index_of(access.tensor);
      touched_[tensor] = std::max(touched_[tensor], anchor);
      if (access.kind != Access::Kind::read) {
        written_[tensor] = std::max(written_[tensor], anchor);
        delayed_[tensor] = updates_from_[at];
      }
    }
  }

  const Node& node_at(std::size_t at) const { return graph_.nodes()[index_of(order_[at])]; }

  const Graph& graph_;
  std::span<const NodeId> order_;
  std::vector<Anchor> anchors_;            // by place in order_
  std::vector<Anchor> written_, touched_;  // by TensorId: latest access so far
  std::vector<Anchor> delayed_;            // by TensorId: earliest place of updates that use it
  std::vector<Anchor> updates_from_;       // by place in order_, of communicating nodes; else -1
};

// Adds the copies around the nodes.
class Writer {
 public:
  Writer(const Graph& graph, std::vector<NodeId> order)
      : graph_(graph),
        order_(std::move(order)),
        here_(graph.tensors().size()),
        last_use_(graph.tensors().size(), order_.size()),
        leaving_(order_.size() + 1) {
    for (std::size_t i = 0; i < order_.size(); ++i) {
      for (const Access& access : accesses(graph_, Compute{order_[i]})) {
        last_use_[index_of(access.tensor)] = i;
      }
    }
    std::vector<bool> listed(graph.tensors().size());  // a tensor may have two output names
    for (const Output& output : graph_.outputs()) {
      const std::size_t tensor = index_of(output.tensor);
      if (!listed[tensor]) {
        leaving_[last_use_[tensor]].push_back(output.tensor);
      }
      listed[tensor] = true;
    }
  }

  Schedule write() {
    for (std::size_t i = 0; i < order_.size(); ++i) {
      const Node& node = graph_.nodes()[index_of(order_[i])];
      for (const TensorId input : node.inputs) {
        fetch(input);
      }
      schedule_.steps.push_back({.action = Compute{order_[i]}, .lane = node.op->lane()});
      offload(leaving_[i]);
    }
    offload(leaving_.back());
    return std::move(schedule_);
  }

 private:
  void fetch(TensorId tensor) {
    if (graph_.info(tensor).role == Role::input && !here_[index_of(tensor)]) {
      here_[index_of(tensor)] = true;
      schedule_.steps.push_back({.action = Fetch{tensor}, .lane = Lane::copy_in});
    }
  }

  void offload(const std::vector<TensorId>& tensors) {
    for (const TensorId tensor : tensors) {
      fetch(tensor);  // an input that is an output and has no other use
      schedule_.steps.push_back({.action = Offload{tensor}, .lane = Lane::copy_out});
    }
  }

  const Graph& graph_;
  std::vector<NodeId> order_;
  std::vector<bool> here_;                      // by TensorId: fetched
  std::vector<std::size_t> last_use_;           // by TensorId: index in order_
  std::vector<std::vector<TensorId>> leaving_;  // by index in order_: outputs last used there
  Schedule schedule_;
};

struct Describe {
  const Graph& graph;

  std::string operator()(const Compute& compute) const {
    const std::size_t node = index_of(compute.node);
    return std::string(graph.nodes()[node].op->name()) + "#" + std::to_string(node);
  }
  std::string operator()(const Offload& offload) const {
    return "offload " + graph.info(offload.tensor).name;
  }
  std::string operator()(const Fetch& fetch) const {
    return "fetch " + graph.info(fetch.tensor).name;
  }
  std::string operator()(const Store& store) const {
    return "store " + graph.info(store.tensor).name;
  }
  std::string operator()(const Load& load) const { return "load " + graph.info(load.tensor).name; }
};

}  // namespace

Schedule make_schedule(const Graph& graph) {
  std::vector<NodeId> order;
  for (std::uint32_t n = 0; n < graph.nodes().size(); ++n) {
    order.push_back(NodeId{n});
  }
  return make_schedule(graph, order);
}

Schedule make_schedule(const Graph& graph, std::span<const NodeId> order) {
  return Writer(graph, Ordering(graph, order).nodes()).write();
}

std::string to_string(const Graph& graph, const Action& action) {
  return std::visit(Describe{graph}, action);
}

}  // namespace cnn
