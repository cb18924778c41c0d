#pragma once

#include <concepts>
#include <initializer_list>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/op.h"
#include "runtime/tensor.h"

namespace cnn {

// input: arrives from the host each step. parameter: trained. state: survives the step untrained
// (running statistics, optimizer slots, synthetic images). derived: survives the step, computed
// from parameters and state by a prologue (layers/passes/prologue.h), never initialised or saved.
// activation: lives within a step.
enum class Role : std::uint8_t { input, parameter, state, derived, activation };

// The initial value of a parameter or state. Draws depend on seed and name only, never on order.
struct Initializer {
  enum class Kind : std::uint8_t { constant, truncated_normal, uniform };
  Kind kind = Kind::constant;
  double mean = 0;  // or the value of a constant
  // Standard deviation of the normal before truncation at two of it (values beyond are redrawn), or
  // of the uniform distribution, which spans mean +/- sqrt(3) of it.
  double stddev = 0;
};

// The order of a parameter's axes in checkpoints of other programs: our O, I, H, W becomes H, W, I,
// O for a convolution or H, W, O, I for a depthwise one; every other parameter keeps its order.
enum class SavedAs : std::uint8_t { same, hwio, hwoi };

// A tensor that occupies some channels of another tensor and has no bytes of its own.
struct Alias {
  TensorId root{};
  std::int64_t channel_offset = 0;
};

struct TensorInfo {
  std::string name;
  TensorDesc desc;
  Role role = Role::activation;
  Initializer initializer;
  SavedAs saved_as = SavedAs::same;
  bool decay = false;  // parameters only: takes part in the L2 term
  bool saved = false;  // parameter or state that belongs in a checkpoint
  std::optional<Alias> alias = std::nullopt;
};

struct Node {
  std::shared_ptr<const Op> op;
  std::vector<TensorId> inputs, outputs;
};

struct Output {
  std::string name;
  TensorId tensor{};
};

// The traits that layers read while they build a graph: they decide which ops a layer adds.
struct Traits {
  bool training = true;              // batch statistics, gradients; else moving averages
  bool dropout = true;               // only with training
  DataType compute = DataType::f32;  // type of activations; parameters stay f32
  std::uint64_t seed = 1234;         // for dropout masks and synthetic labels
  std::string scope = "v/cg/";       // prefix of every parameter's name
};

// Options of one parameter; see TensorInfo.
struct ParameterOptions {
  Initializer initializer;
  SavedAs saved_as = SavedAs::same;
  bool decay = true;
};

// A static graph, append-only: nodes stand in a valid order by construction. Values point to the
// graph, so it is neither copied nor moved.
class Graph {
 public:
  explicit Graph(Traits traits = {});
  Graph(const Graph&) = delete;
  Graph& operator=(const Graph&) = delete;

  const Traits& traits() const { return traits_; }

  Value input(std::string name, TensorDesc desc);
  Value parameter(std::string name, TensorDesc desc, ParameterOptions options);
  // saved: whether checkpoints contain it.
  Value state(std::string name, TensorDesc desc, Initializer initializer, bool saved);
  // Adds a node; output shapes come from op->infer.
  std::vector<Value> append(std::shared_ptr<const Op> op, std::span<const Value> in);
  void output(std::string name, Value value);  // copied to the host at the end of every step

  // For passes that copy a graph: add a tensor as given, and a node with its outputs as given.
  TensorId add_tensor(TensorInfo info);
  void add_node(Node node);
  // For the last pass (other passes cannot copy the result): places `part` inside `root`, from this
  // channel on, and sets the pitch of `part`. Throws Error unless both are activations of one type
  // in nhwc that agree in all axes but channels, and neither shares bytes already; a root may have
  // several parts.
  void place_inside(TensorId part, TensorId root, std::int64_t channel_offset);

  // "conv" -> "<scope>conv0", then "conv1", ...: the number counts per kind over the whole graph,
  // in any scope. Layers name their parameters below it.
  std::string unique_name(std::string_view kind);
  // "conv" -> "<scope>conv": for layers whose name the network gives.
  std::string scoped_name(std::string_view name) const { return scope_ + std::string(name); }

  std::span<const Node> nodes() const { return nodes_; }
  std::span<const TensorInfo> tensors() const { return tensors_; }
  std::span<const TensorId> inputs() const { return inputs_; }
  std::span<const Output> outputs() const { return outputs_; }
  const TensorInfo& info(TensorId id) const { return tensors_[index_of(id)]; }
  std::optional<TensorId> find(std::string_view name) const;  // first tensor of that name
  std::optional<NodeId> producer(TensorId id) const;
  TensorId root_of(TensorId id) const;            // the tensor that owns the bytes: often itself
  std::size_t offset_in_root(TensorId id) const;  // bytes
  bool shares_bytes(TensorId id) const;  // it lies inside another tensor, or another inside it

 private:
  friend class NameScope;

  Traits traits_;
  std::vector<Node> nodes_;
  std::vector<TensorInfo> tensors_;
  std::vector<std::optional<NodeId>> producers_;  // by TensorId
  std::vector<bool> is_root_;                     // by TensorId: another tensor lies inside it
  std::vector<TensorId> inputs_;
  std::vector<Output> outputs_;
  std::map<std::string, int, std::less<>> counters_;
  std::string scope_;
};

// Adds `name` and a slash to the graph's scope for the lifetime of the object: NameScope
// scope(graph, "resnet_v10") turns "v/cg/conv1" into "v/cg/resnet_v10/conv1".
class NameScope {
 public:
  // replaces_innermost: `name` replaces the innermost scope, so that "v/cg/" becomes "v/<name>/".
  enum class Position : std::uint8_t { inside, replaces_innermost };

  NameScope(Graph& graph, std::string_view name, Position position = Position::inside);
  ~NameScope();
  NameScope(const NameScope&) = delete;
  NameScope& operator=(const NameScope&) = delete;

 private:
  Graph& graph_;
  std::string outer_;
};

// Adds a node and returns its first output.
template <std::derived_from<Op> O>
Value emit(O op, std::initializer_list<Value> in) {
  const std::span<const Value> values(in.begin(), in.size());
  return values.front().graph->append(std::make_shared<const O>(std::move(op)), values).front();
}

// Adds a node and returns all its outputs.
template <std::derived_from<Op> O>
std::vector<Value> emit_all(O op, std::span<const Value> in) {
  return in.front().graph->append(std::make_shared<const O>(std::move(op)), in);
}

// The result of a pass: the new graph, and the new id of each old tensor.
struct Rewritten {
  std::shared_ptr<Graph> graph;
  std::vector<std::optional<TensorId>> was;  // by old TensorId; nothing: removed
};

}  // namespace cnn
