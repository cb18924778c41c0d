#include "lms/backward_order.h"

#include <algorithm>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <map>
#include <numeric>
#include <random>

#include "runtime/access.h"
#include "tests/lms/random_step.h"
#include "tests/lms/step_case.h"

namespace cnn::lms {
namespace {

using ::testing::ElementsAreArray;
using tests::StepCase;

// Returns the index of the node of a step, or of the first one behind it.
std::size_t node_of(const StepCase& c, StepId step) {
  for (std::size_t s = index_of(step); s < c.schedule.steps.size(); ++s) {
    if (const auto* compute = std::get_if<Compute>(&c.schedule.steps[s].action)) {
      return index_of(compute->node);
    }
  }
  return c.graph->nodes().size();
}

std::vector<std::size_t> order_of(const StepCase& c) {
  std::vector<std::size_t> order;
  for (const NodeId node : backward_order(*c.graph, c.specs, node_of(c, c.backward))) {
    order.push_back(index_of(node));
  }
  return order;
}

struct Touch {
  std::size_t node = 0;
  bool writes = false;
};

// Returns how nodes touch each tensor that owns its bytes, in the order of the nodes.
std::map<std::size_t, std::vector<Touch>> touches_of(const Graph& graph) {
  std::map<std::size_t, std::vector<Touch>> touches;
  for (std::uint32_t n = 0; n < graph.nodes().size(); ++n) {
    for (const Access& access : accesses(graph, Compute{NodeId{n}})) {
      touches[index_of(graph.root_of(access.tensor))].push_back(
          {.node = n, .writes = access.kind != Access::Kind::read});
    }
  }
  return touches;
}

// Returns whether each pair of nodes of which one writes what the other touches keeps its order.
bool keeps_dependences(const Graph& graph, const std::vector<std::size_t>& order) {
  std::vector<std::size_t> place(order.size());
  for (std::size_t at = 0; at < order.size(); ++at) {
    place[order[at]] = at;
  }
  for (const auto& [root, touches] : touches_of(graph)) {
    for (std::size_t a = 0; a < touches.size(); ++a) {
      for (std::size_t b = a + 1; b < touches.size(); ++b) {
        if ((touches[a].writes || touches[b].writes) && touches[a].node != touches[b].node &&
            place[touches[a].node] > place[touches[b].node]) {
          return false;
        }
      }
    }
  }
  return true;
}

TEST(BackwardOrder, KeepsTheForwardPassAndAllDependences) {
  int changed = 0;
  for (unsigned seed = 0; seed < 300; ++seed) {
    const StepCase c = tests::RandomStep(seed).take();
    const std::vector<std::size_t> order = order_of(c);
    std::vector<std::size_t> nodes(c.graph->nodes().size());
    std::iota(nodes.begin(), nodes.end(), std::size_t{0});
    ASSERT_TRUE(std::ranges::is_permutation(order, nodes)) << seed;
    const auto first = static_cast<std::ptrdiff_t>(node_of(c, c.backward));
    ASSERT_TRUE(std::equal(nodes.begin(), nodes.begin() + first, order.begin())) << seed;
    ASSERT_TRUE(keeps_dependences(*c.graph, order)) << seed;
    changed += order != nodes ? 1 : 0;
  }
  EXPECT_GT(changed, 50);
}

// A gradient with branches of one to three nodes, each of which reads an activation, and their sum.
StepCase forked(std::mt19937& random) {
  StepCase c;
  const auto channels = [&] { return static_cast<std::int64_t>(1 + random() % 9); };
  std::vector<Value> activations;
  for (int i = 0; i < 3; ++i) {
    activations.push_back(c.make_image("conv", {c.images()}, channels()));
  }
  const Value gradient = c.make_image("loss_backward", {activations.back()}, channels());
  std::vector<Value> ends;
  for (int branch = 0; branch < 3; ++branch) {
    Value x = gradient;
    for (std::size_t n = 1 + random() % 3; n > 0; --n) {
      x = c.make_image("conv_backward_data", {x, activations[random() % 3]}, channels());
    }
    ends.push_back(x);
  }
  const Value sum = c.make_image("add", ends, 2);
  c.make("update", {sum});
  c.settle(gradient);
  return c;
}

// Returns the active bytes of the fullest node of the backward pass, by counting at each node what
// it touches and the gradients before it that later ones read.
std::size_t peak_of(const StepCase& c, const std::vector<std::size_t>& order) {
  const std::size_t first = node_of(c, c.backward);
  const auto touches = touches_of(*c.graph);
  std::size_t peak = 0;
  for (std::size_t at = first; at < order.size(); ++at) {
    std::size_t bytes = 0;
    for (const auto& [root, all] : touches) {
      bool here = false, before = false, after = false;
      for (const Touch& touch : all) {
        const auto place = std::ranges::find(order, touch.node) - order.begin();
        const auto here_at = static_cast<std::ptrdiff_t>(at);
        here = here || place == here_at;
        before = before || (place < here_at && touch.writes && touch.node >= first);
        after = after || place > here_at;
      }
      bytes += here || (before && after) ? aligned(c.graph->tensors()[root].desc.bytes()) : 0;
    }
    peak = std::max(peak, bytes);
  }
  return peak;
}

TEST(BackwardOrder, HasTheLeastPeakOfAllOrders) {
  std::mt19937 random(7);
  int better = 0;
  for (int round = 0; round < 60; ++round) {
    const StepCase c = forked(random);
    const std::size_t first = node_of(c, c.backward);
    std::vector<std::size_t> order(c.graph->nodes().size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    const std::size_t given = peak_of(c, order);
    std::size_t least = given;
    // The gradient comes first; the sum and the update, which reads it, come last.
    const auto begin = order.begin() + static_cast<std::ptrdiff_t>(first) + 1;
    const auto end = order.end() - 2;
    if (end - begin > 7) {
      continue;
    }
    do {
      if (keeps_dependences(*c.graph, order)) {
        least = std::min(least, peak_of(c, order));
      }
    } while (std::next_permutation(begin, end));
    EXPECT_EQ(peak_of(c, order_of(c)), least) << round;
    better += least < given ? 1 : 0;
  }
  EXPECT_GT(better, 10);
}

// As in an inception module: four branches begin at parts of one gradient and one activation.
TEST(BackwardOrder, LetsAllReadersOfALargeActivationFollowOneAnother) {
  StepCase c;
  const Value concat = c.make_image("concat", {c.images()}, 40);
  const Value gradient = c.make_image("loss_backward", {concat}, 40);
  std::vector<Value> ends;
  for (int branch = 0; branch < 4; ++branch) {
    const Value gated = c.make_image("relu_backward", {gradient, concat}, 10);
    ends.push_back(c.make_image("conv_backward_data", {gated}, 20));
  }
  const Value sum = c.make_image("add", ends, 20);
  c.make("update", {sum});
  c.settle(gradient);
  EXPECT_THAT(order_of(c), ElementsAreArray({0, 1, 2, 4, 6, 8, 3, 5, 7, 9, 10, 11}));
}

// A variable on the host is loaded for the gradient of data; that of weights is as large.
TEST(BackwardOrder, FreesALoadedVariableBeforeItsGradientIsMade) {
  StepCase c;
  const Value x = c.make_image("conv", {c.images()}, 30);
  const Value gradient = c.make_image("loss_backward", {x}, 4);
  const Value loaded =
      emit(tests::Opaque({StepCase::image(50)}, {.lane = Lane::copy_in}), {c.weights(50)});
  c.make_image("dense_backward_weights", {gradient, x}, 50);
  const Value data = c.make_image("dense_backward_data", {gradient, loaded}, 8);
  const Value gated = c.make_image("relu_backward", {gradient, x}, 8);
  c.make_image("add", {data, gated}, 8);
  c.settle(gradient);
  const std::vector<std::size_t> order = order_of(c);
  EXPECT_LT(std::ranges::find(order, 4), std::ranges::find(order, 3));
}

TEST(BackwardOrder, KeepsTheGivenOrderOfAPartWithTooManyOrders) {
  StepCase c;
  const Value x = c.make_image("conv", {c.images()}, 4);
  const Value gradient = c.make_image("loss_backward", {x}, 4);
  std::vector<Value> ends;
  for (int branch = 0; branch < 16; ++branch) {
    ends.push_back(c.make_image("conv_backward_data", {gradient}, 1 + branch % 3));
  }
  c.make_image("add", ends, 4);
  c.settle(gradient);
  std::vector<std::size_t> nodes(c.graph->nodes().size());
  std::iota(nodes.begin(), nodes.end(), std::size_t{0});
  EXPECT_EQ(order_of(c), nodes);
}

}  // namespace
}  // namespace cnn::lms
