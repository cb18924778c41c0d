#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "layers/batch_slice.h"
#include "layers/optimizer.h"
#include "layers/passes/host_variables.h"
#include "layers/passes/rewriter.h"
#include "runtime/graph.h"
#include "runtime/kernel.h"

// The parameters that place_variables_on_host() puts into host memory, with what reads them and
// what makes their gradients.
namespace cnn::layers {

inline constexpr NodeIndex no_node = ~NodeIndex{0};
// Updates run in slices of so many elements: whole parts of all kernels.
inline constexpr std::int64_t elements_per_update = std::int64_t{1} << 20U;

// A gradient of a parameter, or of consecutive stored elements of it, from `first` on.
struct HostedGradient {
  TensorId tensor{};
  NodeIndex made = no_node;
  std::int64_t first = 0;
};

// A parameter that lies on the host.
struct Hosted {
  TensorId parameter{};
  std::vector<NodeIndex> readers;  // without its update, ascending
  // In training:
  NodeIndex update = no_node;
  std::size_t index = 0;                  // among the parameters of the update
  NodeIndex joined = no_node;             // the node that joins several gradients for the update
  std::vector<HostedGradient> gradients;  // ascending, of all elements together

  bool is_trained() const { return update != no_node; }
};

// Returns the parameters of this choice that may lie on the host, with kernels of the table.
std::vector<Hosted> find_hosted(const Graph& graph, const KernelTable& table,
                                const IsOnHost& is_on_host);

// Returns the rows of a parameter that a node copies, as slices of dense layers read them, or
// nullptr.
const SliceBatch* rows_of_parameter(const Graph& graph, const Node& node);

// Returns the attributes of an update for some of its parameters.
UpdateAttributes attributes_of(const Update& op, std::size_t first, std::size_t count);

}  // namespace cnn::layers
