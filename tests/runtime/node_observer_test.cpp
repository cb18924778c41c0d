#include "runtime/node_observer.h"

#include <chrono>
#include <deque>
#include <gtest/gtest.h>
#include <string>
#include <utility>
#include <vector>

#include "runtime/executor.h"
#include "tests/support/swapping_step.h"
#include "tests/support/test_graphs.h"
#include "tests/support/test_step.h"

namespace cnn {
namespace {

using tests::random_graph;
using tests::test_kernels;
using tests::TestStep;
using tests::with_random_edits;

// Copies the outputs of each node in the order of the streams.
class Copies final : public NodeObserver {
 public:
  struct Copy {
    NodeId node{};
    const Operands* operands = nullptr;
    std::vector<float> values;
  };

  void enqueued(NodeId node, const Operands& operands, Lane /*lane*/, Stream& stream) override {
    Copy& copy = copies_.emplace_back(Copy{.node = node, .operands = &operands, .values = {}});
    stream.host([&copy] {
      for (const TensorView& out : copy.operands->out) {
        const auto values = out.as<float>();
        copy.values.insert(copy.values.end(), values.begin(), values.end());
      }
    });
  }

  const std::deque<Copy>& copies() const { return copies_; }

 private:
  std::deque<Copy> copies_;  // a deque, because streams keep references while it grows
};

// Returns the values of the first copy of each node and checks that recomputed nodes give the same.
std::vector<std::vector<float>> by_node(const Copies& copies, std::size_t nodes) {
  std::vector<std::vector<float>> values(nodes);
  std::vector<bool> seen(nodes);
  for (const Copies::Copy& copy : copies.copies()) {
    std::vector<float>& known = values[index_of(copy.node)];
    if (seen[index_of(copy.node)]) {
      EXPECT_TRUE(tests::identical(known, copy.values)) << "node " << index_of(copy.node);
    }
    seen[index_of(copy.node)] = true;
    known = copy.values;
  }
  return values;
}

std::vector<std::vector<float>> written(StepPlan plan, const KernelTable& table) {
  const std::size_t nodes = plan.graph->nodes().size();
  TestStep step(std::move(plan), table);
  Copies copies;
  step.executor().observe(copies);
  step.run();
  return by_node(copies, nodes);
}

TEST(NodeObserver, SeesEachNodesOutputsBeforeTheirBytesAreUsedAgain) {
  const KernelTable slow =
      test_kernels({.workspace = 256, .longest_delay = std::chrono::microseconds(300)});
  for (unsigned seed = 0; seed < 6; ++seed) {
    const auto graph = random_graph(seed);
    const StepPlan plan = make_plan(graph, slow);
    const auto expected = written(plan, slow);
    for (std::size_t node = 0; node < expected.size(); ++node) {
      EXPECT_EQ(expected[node].empty(), graph->nodes()[node].outputs.empty()) << node;
    }
    int kept = 0;
    const auto moved = written(with_random_edits(plan, seed, 30, kept), slow);
    EXPECT_GT(kept, 0);
    for (std::size_t node = 0; node < expected.size(); ++node) {
      EXPECT_TRUE(tests::identical(moved[node], expected[node])) << "node " << node;
    }
  }
}

}  // namespace
}  // namespace cnn
