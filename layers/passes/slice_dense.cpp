#include "layers/passes/slice_dense.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "layers/batch_slice.h"
#include "layers/column_slice.h"
#include "layers/dense.h"
#include "layers/elementwise.h"
#include "layers/host_variable.h"
#include "layers/optimizer.h"
#include "layers/passes/rewriter.h"
#include "runtime/divide_up.h"

namespace cnn::layers {
namespace {

// Rows [first, first + count) of weights.
struct Rows {
  std::int64_t first = 0, count = 0;
};

// Returns the slices of weights [K, M]: of equal numbers of rows but for the last. Each begins at a
// multiple of elements_per_part, so that slices change no bit of the sum of squares of all.
std::vector<Rows> slices_of(const Shape& weights, std::int64_t slices) {
  const std::int64_t rows = weights[0];
  const std::int64_t rows_of_whole_parts =
      elements_per_part / std::gcd(elements_per_part, weights[1]);
  const std::int64_t count = round_up(divide_up(rows, slices), rows_of_whole_parts);
  std::vector<Rows> result;
  for (std::int64_t first = 0; first < rows; first += count) {
    result.push_back({.first = first, .count = std::min(count, rows - first)});
  }
  return result;
}

// Finds the weights whose dense layers can compute in slices.
class WeightsFinder {
 public:
  explicit WeightsFinder(const Graph& graph) : graph_(graph), users_(graph.tensors().size()) {
    for (const Node& node : graph.nodes()) {
      for (const TensorId input : node.inputs) {
        users_[index_of(input)].push_back(&node);
      }
    }
  }

  // Returns whether dense layers alone read the weights, and the update alone their gradient. Sets
  // `gradient` to that, if there is an update.
  bool can_slice(TensorId weights, std::optional<TensorId>& gradient) const {
    for (const Node* const user : users_[index_of(weights)]) {
      const bool is_product =
          is_any_of<Dense, DenseBackwardData>(*user) && user->inputs[1] == weights;
      if (!is_product && (gradient || !find_gradient(*user, weights, gradient))) {
        return false;
      }
    }
    return true;
  }

 private:
  bool find_gradient(const Node& user, TensorId weights, std::optional<TensorId>& gradient) const {
    const auto* const update = as<Update>(user);
    if (update == nullptr) {
      return false;
    }
    const auto place = std::ranges::find(user.inputs, weights) - user.inputs.begin();
    const std::size_t index = static_cast<std::size_t>(place) - update->first_parameter();
    if (index >= update->parameters) {
      return false;
    }
    gradient = user.inputs[update->first_gradient() + index];
    const std::optional<NodeId> made = graph_.producer(*gradient);
    return made && users_[index_of(*gradient)].size() == 1 &&
           as<DenseBackwardWeights>(graph_.nodes()[index_of(*made)]) != nullptr;
  }

  const Graph& graph_;
  std::vector<std::vector<const Node*>> users_;  // by TensorId, once for each operand
};

class DenseSlicer {
 public:
  DenseSlicer(const Graph& graph, const IsOnHost& is_on_host, std::int64_t slices)
      : graph_(graph), rewriter_(graph) {
    const WeightsFinder finder(graph);
    for (std::uint32_t t = 0; t < graph.tensors().size(); ++t) {
      const TensorInfo& info = graph.info(TensorId{t});
      if (info.role != Role::parameter || info.desc.shape.rank() != 2 || !is_on_host(info)) {
        continue;
      }
      std::vector<Rows> rows = slices_of(info.desc.shape, slices);
      std::optional<TensorId> gradient;
      if (rows.size() > 1 && finder.can_slice(TensorId{t}, gradient)) {
        if (gradient) {
          of_gradient_.emplace(*gradient, rows);
        }
        of_weights_.emplace(TensorId{t}, std::move(rows));
      }
    }
  }

  SlicedDense run() {
    for (const Node& node : graph_.nodes()) {
      place(node);
    }
    return {.rewritten = rewriter_.finish(), .weights = of_weights_.size()};
  }

 private:
  void place(const Node& node) {
    const auto rows_of = [](const std::map<TensorId, std::vector<Rows>>& all, TensorId id) {
      const auto found = all.find(id);
      return found == all.end() ? std::span<const Rows>() : std::span<const Rows>(found->second);
    };
    if (is_any_of<Dense, DenseBackwardData>(node)) {
      if (const std::span<const Rows> rows = rows_of(of_weights_, node.inputs[1]); !rows.empty()) {
        as<Dense>(node) != nullptr ? add_product(node, rows) : add_data_gradient(node, rows);
        return;
      }
    } else if (as<DenseBackwardWeights>(node) != nullptr) {
      if (const std::span<const Rows> rows = rows_of(of_gradient_, node.outputs[0]);
          !rows.empty()) {
        add_weight_gradient(node, rows);
        return;
      }
    }
    rewriter_.copy(node);
  }

  Value input(const Node& node, std::size_t i) {
    return {&rewriter_.graph(), rewriter_.now(node.inputs[i])};
  }

  void add_product(const Node& node, std::span<const Rows> rows) {
    const DenseAttributes& attributes = as<Dense>(node)->attributes;
    std::optional<Value> sum;
    for (const Rows& slice : rows) {
      std::vector<Value> in{slice_columns(input(node, 0), slice.first, slice.count),
                            slice_batch(input(node, 1), slice.first, slice.count)};
      const bool bias = attributes.bias && !sum;
      if (bias) {
        in.push_back(input(node, 2));
      }
      const Value product = emit_all(Dense({.bias = bias}), in).front();
      const bool is_last = &slice == &rows.back();
      sum = sum ? emit(Add(attributes.relu && is_last), {*sum, product}) : product;
    }
    rewriter_.moved(node.outputs[0], sum.value().id);
  }

  void add_data_gradient(const Node& node, std::span<const Rows> rows) {
    std::vector<Value> parts;
    for (const Rows& slice : rows) {
      const Value w = slice_batch(input(node, 1), slice.first, slice.count);
      parts.push_back(emit(DenseBackwardData(), {input(node, 0), w}));
    }
    rewriter_.moved(node.outputs[0], concat_columns(parts).id);
  }

  void add_weight_gradient(const Node& node, std::span<const Rows> rows) {
    const bool bias = as<DenseBackwardWeights>(node)->attributes.bias;
    std::vector<Value> parts;
    for (const Rows& slice : rows) {
      const bool with_bias = bias && parts.empty();
      const std::vector<Value> made =
          emit_all(DenseBackwardWeights({.bias = with_bias}),
                   std::vector<Value>{slice_columns(input(node, 0), slice.first, slice.count),
                                      input(node, 1)});
      if (with_bias) {
        rewriter_.moved(node.outputs[1], made[1].id);
      }
      parts.push_back(made[0]);
    }
    rewriter_.moved(node.outputs[0], concat_batch(parts).id);
  }

  const Graph& graph_;
  Rewriter rewriter_;
  std::map<TensorId, std::vector<Rows>> of_weights_, of_gradient_;  // by old tensor
};

}  // namespace

SlicedDense slice_dense(const Graph& graph, const IsOnHost& is_on_host, std::int64_t slices) {
  return DenseSlicer(graph, is_on_host, slices).run();
}

}  // namespace cnn::layers
