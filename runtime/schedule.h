#pragma once

#include <span>
#include <string>
#include <variant>
#include <vector>

#include "runtime/device.h"
#include "runtime/graph.h"

namespace cnn {

struct Compute {
  NodeId node{};  // a node that appears twice is a recomputation
};
struct Offload {
  TensorId
      tensor{};  // device -> host; its device bytes are free afterwards. Outputs leave this way.
};
struct Fetch {
  TensorId tensor{};  // host -> device. Inputs start on the host, so a batch arrives this way.
};
struct Store {
  TensorId tensor{};  // host -> disk, of an offloaded tensor; its host bytes are free afterwards
};
struct Load {
  TensorId tensor{};  // disk -> host, of a stored tensor that a Fetch needs again
};
using Action = std::variant<Compute, Offload, Fetch, Store, Load>;

struct Step {
  Action action;
  Lane lane = Lane::compute;
  // Waits for earlier steps of other lanes; link() adds the necessary ones.
  std::vector<StepId> after;
};

struct Schedule {
  std::vector<Step> steps;  // steps of one lane run in this order
};

// Returns the nodes in their order, except for two kinds. A node that only mutates persistent
// tensors (an optimizer bucket) runs as soon as its inputs exist and every earlier reader and
// writer of its mutated tensors has run, so that gradients die early. A node of Lane::communicate
// runs as soon as its inputs exist; an update that waits for it comes after the start of the last
// such node. Inputs are fetched just before their first use; outputs leave right after their last
// use.
Schedule make_schedule(const Graph& graph);
// The same for another order of all nodes, in which each still follows those that it depends on.
Schedule make_schedule(const Graph& graph, std::span<const NodeId> order);

std::string to_string(const Graph& graph, const Action& action);

}  // namespace cnn
