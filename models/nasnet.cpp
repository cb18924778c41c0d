// Zoph et al., 2017: NASNet-A, as tf_cnn_benchmarks builds it. It keeps the defaults of TF-Slim, so
// every convolution has a bias and a ReLU before its batch norm, and norms have no gamma but weight
// decay.
#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "layers/activation.h"
#include "layers/batch_norm.h"
#include "layers/concat.h"
#include "layers/conv.h"
#include "layers/drop_path.h"
#include "layers/elementwise.h"
#include "layers/pool.h"
#include "layers/subsample.h"
#include "models/networks.h"

namespace cnn::models {

using layers::Padding;

namespace {

// The settings of a network.
struct Nasnet {
  int cells = 0;             // without the two reduction cells
  std::int64_t filters = 0;  // of the first normal cells; they double at each reduction
  std::int64_t stem_filters = 0;
  bool imagenet_stem = true;           // ends in two reduction cells
  bool skips_reduction_input = false;  // a cell after a reduction takes the reduction's input
  double drop_path = 0;                // final fraction of examples that the last cell drops
  std::int32_t drop_path_steps = 1;    // steps until that fraction is reached

  int reduction(int index) const { return (index + 1) * cells / 3; }
  int auxiliary_cell() const { return reduction(1) - 1; }
  int all_cells() const { return cells + 2 + (imagenet_stem ? 2 : 0); }
};

constexpr Nasnet mobile{.cells = 12, .filters = 44, .stem_filters = 32};
constexpr Nasnet large{.cells = 18,
                       .filters = 168,
                       .stem_filters = 96,
                       .skips_reduction_input = true,
                       .drop_path = 0.3,
                       .drop_path_steps = 250'000};
constexpr Nasnet cifar{.cells = 18,
                       .filters = 32,
                       .stem_filters = 96,
                       .imagenet_stem = false,
                       .drop_path = 0.4,
                       .drop_path_steps = 937'500};

const Nasnet& settings_of(NasnetSize size) {
  return size == NasnetSize::mobile ? mobile : size == NasnetSize::large ? large : cifar;
}

struct ConvSize {
  std::int64_t filters = 0, kernel = 1, stride = 1;
  Padding padding = Padding::same;
};

// A convolution with a bias and a ReLU.
Value slim_conv(Value x, const ConvSize& size, std::string_view layer) {
  return layers::conv(x, {.filters = size.filters,
                          .kernel = size.kernel,
                          .stride = size.stride,
                          .padding = size.padding,
                          .glorot = true,
                          .layer = layer,
                          .weights = "weights"});
}

Value slim_norm(Value x, std::string_view layer) {
  return layers::batch_norm(x, {.decay_parameters = true, .layer = layer});
}

// A depthwise convolution and a 1x1 one, followed by one bias and a ReLU.
Value slim_separable(Value x, const ConvSize& size, std::string_view layer) {
  const Value y = layers::conv(x, {.kernel = size.kernel,
                                   .stride = size.stride,
                                   .bias = false,
                                   .relu = false,
                                   .depthwise = true,
                                   .glorot = true,
                                   .layer = layer,
                                   .weights = "depthwise_weights"});
  return layers::conv(
      y, {.filters = size.filters, .glorot = true, .layer = layer, .weights = "pointwise_weights"});
}

// Halves an image without losing every other pixel: half of the filters read the even pixels, the
// others the odd ones.
Value factorized_reduction(Value x, std::int64_t filters, std::int64_t stride) {
  if (stride == 1) {
    return slim_norm(slim_conv(x, {filters}, "path_conv"), "path_bn");
  }
  const Value even = slim_conv(layers::subsample(x, stride, 0), {filters / 2}, "path1_conv");
  const Value odd = slim_conv(layers::subsample(x, stride, 1), {filters / 2}, "path2_conv");
  return slim_norm(layers::concat({{even, odd}}), "final_path_bn");
}

enum class Operation : std::uint8_t {
  none,
  separable_3x3,
  separable_5x5,
  separable_7x7,
  average_3x3,
  max_3x3,
};

std::int64_t kernel_of(Operation operation) {
  switch (operation) {
    case Operation::separable_5x5:
      return 5;
    case Operation::separable_7x7:
      return 7;
    case Operation::none:
    case Operation::separable_3x3:
    case Operation::average_3x3:
    case Operation::max_3x3:
      break;
  }
  return 3;
}

bool is_separable(Operation operation) {
  return operation == Operation::separable_3x3 || operation == Operation::separable_5x5 ||
         operation == Operation::separable_7x7;
}

// One operation on an earlier state of a cell.
struct Branch {
  Operation operation = Operation::none;
  std::size_t state = 0;  // 0: the cell's input, 1: the previous cell's input
};

// Each of five steps adds the sum of two branches to the states; states without readers form the
// cell's output.
struct CellPlan {
  std::array<std::pair<Branch, Branch>, 5> steps;
  std::array<bool, 7> is_read;
  std::int64_t stride = 1;
};

using enum Operation;

constexpr CellPlan normal_cell{{{{{separable_5x5, 0}, {separable_3x3, 1}},
                                 {{separable_5x5, 1}, {separable_3x3, 1}},
                                 {{average_3x3, 0}, {none, 1}},
                                 {{average_3x3, 1}, {average_3x3, 1}},
                                 {{separable_3x3, 0}, {none, 0}}}},
                               {true, false, false, false, false, false, false},
                               1};
constexpr CellPlan reduction_cell{{{{{separable_5x5, 0}, {separable_7x7, 1}},
                                    {{max_3x3, 0}, {separable_7x7, 1}},
                                    {{average_3x3, 0}, {separable_5x5, 1}},
                                    {{none, 3}, {average_3x3, 2}},
                                    {{separable_3x3, 2}, {max_3x3, 0}}}},
                                  {true, true, true, false, false, false, false},
                                  2};

// Builds one cell.
class Cell {
 public:
  // drop: fraction of examples that every branch of this cell drops at `steps`.
  Cell(const CellPlan& plan, std::int64_t filters, double drop, std::int32_t drop_steps)
      : plan_(plan), filters_(filters), drop_(drop), drop_steps_(drop_steps) {}

  // before: the output of the cell before x's; nothing in the first cell, which takes x twice.
  Value build(Value x, std::optional<Value> before) {
    const Value previous = before ? fitted(*before, x) : x;
    states_ = {slim_norm(slim_conv(rectified(x), {filters_}, "1x1"), "beginning_bn"), previous};
    for (std::size_t i = 0; i < plan_.steps.size(); ++i) {
      const NameScope scope(*x.graph, "comb_iter_" + std::to_string(i));
      const Value left = branch(plan_.steps[i].first, "left");
      const Value right = branch(plan_.steps[i].second, "right");
      states_.push_back(layers::add(left, right));
    }
    return output();
  }

 private:
  // Returns the ReLU of a state, shared by the branches that begin with it.
  Value rectified(Value x) {
    const auto [found, is_new] = rectified_.try_emplace(x.id, Value{});
    if (is_new) {
      found->second = layers::relu(x);
    }
    return found->second;
  }

  // Returns the output of an earlier cell in the size and width of this one.
  Value fitted(Value before, Value x) {
    if (before.desc().shape[3] != x.desc().shape[3]) {
      return factorized_reduction(rectified(before), filters_, 2);
    }
    if (before.desc().shape[1] != filters_) {
      return slim_norm(slim_conv(rectified(before), {filters_}, "prev_1x1"), "prev_bn");
    }
    return before;
  }

  Value branch(const Branch& branch, std::string_view side) {
    const Value x = states_[branch.state];
    const NameScope scope(*x.graph, side);
    const std::int64_t stride = branch.state < 2 ? plan_.stride : 1;
    if (branch.operation == Operation::none) {
      const bool fits = stride == 1 && x.desc().shape[1] == filters_;
      return fits ? x : projected(rectified(x), stride);
    }
    const Value y = is_separable(branch.operation) ? separable(x, branch.operation, stride)
                                                   : pooled(x, branch, stride);
    return layers::drop_path(y, drop_, drop_steps_);
  }

  Value projected(Value x, std::int64_t stride) const {
    return slim_norm(slim_conv(x, {.filters = filters_, .stride = stride}, "1x1"), "bn_1");
  }

  // Appends two separable convolutions, the first with the stride.
  Value separable(Value x, Operation operation, std::int64_t stride) {
    const std::int64_t kernel = kernel_of(operation);
    const std::string size = std::to_string(kernel) + "x" + std::to_string(kernel);
    Value y = rectified(x);
    for (const std::string index : {"_1", "_2"}) {
      y = slim_separable(y, {filters_, kernel, index == "_1" ? stride : 1},
                         "separable_" + size + index);
      y = slim_norm(y, "bn_sep_" + size + index);
      y = index == "_1" ? layers::relu(y) : y;
    }
    return y;
  }

  Value pooled(Value x, const Branch& branch, std::int64_t stride) {
    const std::pair key{branch.operation, branch.state};
    const auto [found, is_new] = pooled_.try_emplace(key, Value{});
    if (is_new) {
      const auto pool =
          branch.operation == Operation::max_3x3 ? layers::max_pool : layers::average_pool;
      found->second = pool(x, {.kernel = 3, .stride = stride, .padding = Padding::same});
    }
    const Value y = found->second;
    return x.desc().shape[1] == filters_ ? y : projected(y, 1);
  }

  Value output() {
    const Shape& last = states_.back().desc().shape;
    const NameScope scope(*states_.back().graph, "cell_output");
    std::vector<Value> unread;
    for (std::size_t i = 0; i < states_.size(); ++i) {
      const Shape& shape = states_[i].desc().shape;
      if (plan_.is_read[i]) {
        continue;
      }
      if (shape == last) {
        unread.push_back(states_[i]);
        continue;
      }
      const NameScope reduction(*states_[i].graph, "reduction_" + std::to_string(i));
      unread.push_back(factorized_reduction(states_[i], filters_, shape[2] == last[2] ? 1 : 2));
    }
    return layers::concat(unread);
  }

  const CellPlan& plan_;
  std::int64_t filters_;
  double drop_;
  std::int32_t drop_steps_;
  std::vector<Value> states_;
  std::map<TensorId, Value> rectified_;
  std::map<std::pair<Operation, std::size_t>, Value> pooled_;  // without drop path
};

// Returns the second classifier's features.
Value auxiliary_features(Value x, int cell) {
  const NameScope outer(*x.graph, "aux_" + std::to_string(cell));
  const NameScope inner(*x.graph, "aux_logits");
  Value y = layers::average_pool(layers::relu(x), {.kernel = 5, .stride = 3});
  y = layers::relu(slim_norm(slim_conv(y, {128}, "proj"), "aux_bn0"));
  // The window is as large as the map.
  y = slim_conv(y, {.filters = 768, .kernel = y.desc().shape[2], .padding = Padding::valid},
                "Conv");
  return layers::spatial_mean(layers::relu(slim_norm(y, "aux_bn1")));
}

// Builds a network cell by cell.
class Builder {
 public:
  Builder(const Nasnet& settings, Value images) : settings_(settings), x_(images) {}

  // Returns the features; `auxiliary`, unless null, receives the second classifier's.
  Value build(std::optional<Value>* auxiliary) {
    build_stem();
    std::int64_t filters = settings_.filters;
    for (int i = 0; i < settings_.cells; ++i) {
      std::optional<Value> before = previous_;
      for (const int reduction : {0, 1}) {
        if (i == settings_.reduction(reduction)) {
          filters *= 2;
          append(reduction_cell, "reduction_cell_" + std::to_string(reduction), filters, previous_);
        }
      }
      if (!settings_.skips_reduction_input) {
        before = previous_;
      }
      append(normal_cell, "cell_" + std::to_string(i), filters, before);
      if (auxiliary != nullptr && i == settings_.auxiliary_cell()) {
        *auxiliary = auxiliary_features(x_, i);
      }
    }
    return layers::spatial_mean(layers::relu(x_));
  }

 private:
  void build_stem() {
    if (!settings_.imagenet_stem) {
      x_ = slim_norm(slim_conv(x_, {settings_.stem_filters, 3}, "l1_stem_3x3"), "l1_stem_bn");
      return;
    }
    const ConvSize first{settings_.stem_filters, 3, 2, Padding::valid};
    x_ = slim_norm(slim_conv(x_, first, "conv0"), "conv0_bn");
    append(reduction_cell, "cell_stem_0", settings_.filters / 4, std::nullopt);
    append(reduction_cell, "cell_stem_1", settings_.filters / 2, previous_);
  }

  void append(const CellPlan& plan, std::string_view name, std::int64_t filters,
              std::optional<Value> before) {
    const NameScope scope(*x_.graph, name);
    ++cells_;
    const double depth = static_cast<double>(cells_) / settings_.all_cells();
    Cell cell(plan, filters, depth * settings_.drop_path, settings_.drop_path_steps);
    const Value output = cell.build(x_, before);
    previous_ = std::exchange(x_, output);
  }

  const Nasnet& settings_;
  Value x_;
  std::optional<Value> previous_;  // the output before x_
  int cells_ = 0;
};

}  // namespace

Value nasnet(Value images, NasnetSize size) {
  return Builder(settings_of(size), images).build(nullptr);
}

TwoHeads nasnet_with_auxiliary_head(Value images, NasnetSize size) {
  std::optional<Value> auxiliary;
  const Value features = Builder(settings_of(size), images).build(&auxiliary);
  return {features, auxiliary.value()};
}

}  // namespace cnn::models
