#include "layers/passes/concat_in_place.h"

#include <algorithm>
#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include "layers/concat.h"
#include "layers/passes/rewriter.h"

namespace cnn::layers {
namespace {

// Kernels move 16 bytes at a time.
constexpr std::int64_t access_bytes = 16;

// The result of a Concat with its operands, or the input of a Split with its results.
struct ConcatGroup {
  TensorId whole{};
  std::vector<TensorId> parts;  // in the order of their channels
};

std::optional<ConcatGroup> group_of(const Node& node) {
  if (as<Concat>(node) != nullptr) {
    return ConcatGroup{.whole = node.outputs.front(), .parts = node.inputs};
  }
  if (as<Split>(node) != nullptr) {
    return ConcatGroup{.whole = node.inputs.front(), .parts = node.outputs};
  }
  return std::nullopt;
}

// Places the parts of every Concat and Split inside the whole tensor, in node order.
class Placement {
 public:
  Placement(Graph& graph, const KernelTable& table)
      : graph_(graph), table_(table), touched_by_(graph.tensors().size()) {
    for (const Node& node : graph.nodes()) {
      for (const auto* side : {&node.inputs, &node.outputs}) {
        for (const TensorId id : *side) {
          touched_by_[index_of(id)].push_back(&node);
        }
      }
    }
    leaves_.resize(graph.tensors().size());
    for (const Output& output : graph.outputs()) {
      leaves_[index_of(output.tensor)] = true;
    }
  }

  void run() {
    for (const Node& node : graph_.nodes()) {
      if (const std::optional<ConcatGroup> group = group_of(node)) {
        place(*group, node);
      }
    }
  }

 private:
  using Places = std::map<TensorId, std::int64_t>;  // by part: its first channel in the whole

  void place(const ConcatGroup& group, const Node& node) {
    if (!is_free(group.whole)) {
      return;
    }
    Places places;
    std::int64_t channel = 0, placed = 0;
    for (const TensorId part : group.parts) {
      const std::int64_t channels = graph_.info(part).desc.shape[1];
      if (is_free(part) && fits(part, group.whole, channel) &&
          places.try_emplace(part, channel).second) {
        // If the kernel of the group itself takes no pitch, the other kernels need not be asked.
        if (takes(node, places, group.whole) && all_take(part, places, group.whole)) {
          placed += channels;
        } else {
          places.erase(part);
        }
      }
      channel += channels;
    }
    // The whole tensor lives as long as any of its parts. If only few channels are in place, that
    // costs more memory than it saves.
    if (2 * placed >= channel) {
      for (const auto& [part, first] : places) {
        graph_.place_inside(part, group.whole, first);
      }
    }
  }

  bool is_free(TensorId id) const {
    const TensorInfo& info = graph_.info(id);
    return info.role == Role::activation && info.desc.layout == Layout::nhwc &&
           !graph_.shares_bytes(id) && !leaves_[index_of(id)];
  }

  bool fits(TensorId part, TensorId whole, std::int64_t channel) const {
    const TensorDesc& inner = graph_.info(part).desc;
    const TensorDesc& outer = graph_.info(whole).desc;
    const auto size = static_cast<std::int64_t>(size_of(outer.type));
    return inner.type == outer.type && outer.layout == Layout::nhwc &&
           channel * size % access_bytes == 0 && outer.shape[1] * size % access_bytes == 0;
  }

  bool all_take(TensorId part, const Places& places, TensorId whole) const {
    return std::ranges::all_of(touched_by_[index_of(part)],
                               [&](const Node* node) { return takes(*node, places, whole); });
  }

  // Returns whether the node has a kernel that takes the placed parts with the pitch of the whole.
  bool takes(const Node& node, const Places& places, TensorId whole) const {
    const std::int64_t pitch = graph_.info(whole).desc.shape[1];
    const auto descs = [&](const std::vector<TensorId>& ids) {
      std::vector<TensorDesc> result;
      for (const TensorId id : ids) {
        TensorDesc& desc = result.emplace_back(graph_.info(id).desc);
        desc.pitch = places.contains(id) && desc.shape[1] < pitch ? pitch : desc.pitch;
      }
      return result;
    };
    const Signature request{.in = descs(node.inputs), .out = descs(node.outputs)};
    const std::optional<KernelSpec> spec = table_.describe(*node.op, request);
    return spec && spec->in == request.in && spec->out == request.out;
  }

  Graph& graph_;
  const KernelTable& table_;
  std::vector<std::vector<const Node*>> touched_by_;  // by TensorId
  std::vector<bool> leaves_;                          // by TensorId: an output of the graph
};

}  // namespace

Rewritten concat_in_place(const Graph& graph, const KernelTable& table) {
  Rewritten result = copy_of(graph);
  Placement(*result.graph, table).run();
  return result;
}

InPlace count_in_place(const Graph& graph) {
  InPlace count;
  for (const Node& node : graph.nodes()) {
    const std::optional<ConcatGroup> group = group_of(node);
    if (!group) {
      continue;
    }
    ++count.nodes;
    bool whole = true;
    std::int64_t channel = 0;
    for (const TensorId part : group->parts) {
      const TensorInfo& info = graph.info(part);
      const bool in_place =
          info.alias && info.alias->root == group->whole && info.alias->channel_offset == channel;
      (in_place ? count.bytes : count.copied_bytes) += info.desc.bytes();
      whole = whole && in_place;
      channel += info.desc.shape[1];
    }
    count.whole_nodes += whole ? 1 : 0;
  }
  return count;
}

}  // namespace cnn::layers
