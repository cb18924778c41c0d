#pragma once

#include <algorithm>
#include <map>
#include <random>
#include <string>
#include <vector>

#include "tests/lms/mix.h"
#include "tests/lms/step_case.h"
#include "tests/support/test_ops.h"

namespace cnn::tests {

// Builds a random training step like those of networks, one per seed. The forward pass has
// convolutions, batch norms with statistics, ReLU in place, pools, sums and concatenated images,
// some of them in place. Then follow the gradients of all nodes that lead to the loss and the
// updates. Each gradient reads some inputs or outputs of its node.
class RandomStep {
 public:
  explicit RandomStep(unsigned seed) : random_(seed) {
    StepCase& c = case_;
    values_.push_back(any(2) == 0 ? c.images(2) : c.graph->input("images", StepCase::image(2)));
    const std::size_t nodes = 6 + any(16);
    for (std::size_t n = 0; n < nodes; ++n) {
      add_forward();
    }
    forward_nodes_ = c.graph->nodes().size();
    c.graph->output("loss", c.make_all("loss", {values_.back()}, {TensorDesc{}}).front());
    const Value first = c.make("loss_backward", {values_.back()});
    gradients_[values_.back().id].push_back(first);
    for (std::size_t n = forward_nodes_; n-- > 0;) {
      add_backward(n);
    }
    for (const auto& [part, root, channel] : parts_) {
      c.graph->place_inside(part, root, channel);
    }
    c.settle(first, 64);
    c.costs.out_bytes_per_second = 100;
    c.costs.in_bytes_per_second = 200;
    for (double& seconds : c.costs.seconds) {
      seconds = 1 + static_cast<double>(any(8));
    }
  }
  StepCase take() { return std::move(case_); }

 private:
  struct Part {
    TensorId tensor{}, root{};
    std::int64_t channel = 0;
  };

  std::size_t any(std::size_t below) { return random_() % below; }
  // Prefers recent values, so that chains form; an occasional old one makes a live interval long.
  Value some() {
    const std::size_t back =
        any(4) == 0 ? values_.size() : std::min<std::size_t>(3, values_.size());
    return values_[values_.size() - 1 - any(back)];
  }

  void add_forward() {
    const StepCase& c = case_;
    const Value x = some();
    const std::int64_t channels = x.desc().shape[1];
    switch (any(7)) {
      case 0:
      case 1:
        values_.push_back(c.make("conv", {x, c.weights(channels)}));
        break;
      case 2:
        values_.push_back(c.make("relu", {x}, true));
        break;
      case 3:
        values_.push_back(
            c.make_all("batch_norm", {x}, {StepCase::image(channels), floats(channels)}).front());
        break;
      case 4:
        values_.push_back(c.make("max_pool", {x}));
        break;
      case 5:
        values_.push_back(c.make("add", {x, some()}, true));
        break;
      default:
        join(x, some());
    }
  }

  void join(Value a, Value b) {
    const std::int64_t channels = a.desc().shape[1] + b.desc().shape[1];
    if (a == b || channels > 32) {
      return;
    }
    const Value whole = emit(Join(), {a, b});
    values_.push_back(whole);
    if (any(2) == 0 && may_lie_inside(a) && may_lie_inside(b)) {
      for (const Value& part : {a, b}) {
        is_shared_[part.id] = is_shared_[whole.id] = true;
      }
      parts_.push_back({a.id, whole.id, 0});
      parts_.push_back({b.id, whole.id, a.desc().shape[1]});
    }
  }
  bool may_lie_inside(Value value) {
    return case_.graph->info(value.id).role == Role::activation && !is_shared_[value.id];
  }

  void add_backward(std::size_t n) {
    const StepCase& c = case_;
    const Node node = c.graph->nodes()[n];
    const auto found = gradients_.find(node.outputs.front());
    if (found == gradients_.end()) {
      return;  // no node leads to the loss
    }
    const std::vector<Value> parts = found->second;
    const Value dy = parts.size() == 1 ? parts.front() : c.make("add", parts, true);
    for (const TensorId input : node.inputs) {
      const Value x{c.graph.get(), input};
      const Role role = c.graph->info(input).role;
      if (role == Role::parameter) {
        const Value dw = c.make_all("conv_backward_weights", {dy, {c.graph.get(), node.inputs[0]}},
                                    {c.graph->info(input).desc})
                             .front();
        emit(Descend(), {x, dw});
      } else if (role == Role::activation) {
        gradients_[input].push_back(c.make_image(std::string(node.op->name()) + "_backward",
                                                 read_by_gradient(node, dy), x.desc().shape[1]));
      }
    }
  }

  std::vector<Value> read_by_gradient(const Node& node, Value dy) {
    std::vector<Value> in{dy};
    for (const auto* operands : {&node.inputs, &node.outputs}) {
      for (const TensorId tensor : *operands) {
        if (any(2) == 0) {
          in.push_back({case_.graph.get(), tensor});
        }
      }
    }
    return in;
  }

  std::mt19937 random_;
  StepCase case_;
  std::vector<Value> values_;
  std::size_t forward_nodes_ = 0;
  std::map<TensorId, std::vector<Value>> gradients_;
  std::map<TensorId, bool> is_shared_;
  std::vector<Part> parts_;
};

inline StepCase random_step(unsigned seed) { return RandomStep(seed).take(); }

}  // namespace cnn::tests
