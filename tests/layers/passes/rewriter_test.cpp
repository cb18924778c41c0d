#include "layers/passes/rewriter.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <string>
#include <vector>

#include "layers/elementwise.h"
#include "layers/operands.h"
#include "runtime/cpu/reference_kernel.h"
#include "runtime/error.h"
#include "tests/support/error_of.h"

namespace cnn::layers {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using tests::error_of;

TensorDesc rewritten_desc() { return described({1, 8, 2, 2}, DataType::f32); }

// The graph computes sum = x + x and y = sum + w; it declares the variable w after a node.
struct RewrittenGraph {
  Graph graph{Traits{.seed = 77, .scope = "v/other/"}};
  Value x = graph.input("x", rewritten_desc());
  Value sum = emit(Add(), {x, x});
  Value w = graph.parameter("w", rewritten_desc(), {.initializer = {.mean = 3}, .decay = false});
  Value y = emit(Add(), {sum, w});

  RewrittenGraph() {
    graph.output("y", y);
    graph.output("x", x);
  }
};

TEST(Rewriter, CopiesAGraphWithAllThatItSays) {
  const RewrittenGraph g;
  const Rewritten copy = copy_of(g.graph);
  ASSERT_EQ(copy.graph->nodes().size(), 2U);
  ASSERT_EQ(copy.graph->tensors().size(), g.graph.tensors().size());
  EXPECT_EQ(copy.graph->traits().seed, 77U);
  EXPECT_EQ(copy.graph->traits().scope, "v/other/");
  for (std::size_t t = 0; t < g.graph.tensors().size(); ++t) {
    ASSERT_TRUE(copy.was[t].has_value());
    const TensorInfo &before = g.graph.tensors()[t], &after = copy.graph->info(*copy.was[t]);
    EXPECT_EQ(after.name, before.name);
    EXPECT_EQ(after.desc, before.desc);
    EXPECT_EQ(after.role, before.role);
    EXPECT_EQ(after.decay, before.decay);
    EXPECT_EQ(after.initializer.mean, before.initializer.mean);
  }
  EXPECT_EQ(copy.graph->nodes()[1].op, g.graph.nodes()[1].op) << "ops are shared";
  EXPECT_THAT(copy.graph->nodes()[1].inputs, ElementsAre(*copy.was[1], *copy.was[2]));
  ASSERT_EQ(copy.graph->outputs().size(), 2U);
  EXPECT_EQ(copy.graph->outputs()[0].name, "y");
  EXPECT_EQ(copy.graph->outputs()[0].tensor, *copy.was[3]);
  EXPECT_EQ(copy.graph->outputs()[1].tensor, *copy.was[0]);
}

TEST(Rewriter, PutsWhatNoNodeMakesFirst) {
  const RewrittenGraph g;
  const Rewritten copy = copy_of(g.graph);
  EXPECT_EQ(index_of(*copy.was[index_of(g.x.id)]), 0U);
  EXPECT_EQ(index_of(*copy.was[index_of(g.w.id)]), 1U);
  EXPECT_EQ(index_of(*copy.was[index_of(g.sum.id)]), 2U);
}

TEST(Rewriter, ChangesHowAVariableLies) {
  const RewrittenGraph g;
  std::vector<std::optional<TensorDesc>> persistent(g.graph.tensors().size());
  persistent[index_of(g.w.id)] = rewritten_desc();
  persistent[index_of(g.w.id)]->layout = Layout::nhwc;
  persistent[index_of(g.sum.id)] = rewritten_desc();
  Rewriter rewriter(g.graph, persistent);
  EXPECT_EQ(rewriter.graph().info(rewriter.now(g.w.id)).desc.layout, Layout::nhwc);
  EXPECT_EQ(rewriter.graph().info(rewriter.now(g.w.id)).name, "w");
  EXPECT_EQ(rewriter.graph().info(rewriter.now(g.x.id)).desc.layout, Layout::nchw);
}

TEST(Rewriter, NamesATensorThatIsReadBeforeItIsMade) {
  const RewrittenGraph g;
  Rewriter rewriter(g.graph);
  EXPECT_THAT(error_of([&] { rewriter.now(g.sum.id); }),
              HasSubstr("a rewrite reads add#0 before it is made"));
  EXPECT_THAT(error_of([&] { rewriter.copy(g.graph.nodes()[1]); }), HasSubstr("add#0"));
  rewriter.copy(g.graph.nodes()[0]);
  EXPECT_EQ(error_of([&] { rewriter.now(g.sum.id); }), "");
}

TEST(Rewriter, RefusesToFinishWithoutAnOutput) {
  const RewrittenGraph g;
  Rewriter rewriter(g.graph);
  rewriter.copy(g.graph.nodes()[0]);
  EXPECT_THAT(error_of([&] { rewriter.finish(); }), HasSubstr("reads add#1"));
}

TEST(Rewriter, LeavesOutANodeWhoseTensorMovedElsewhere) {
  const RewrittenGraph g;
  Rewriter rewriter(g.graph);
  rewriter.moved(g.sum.id, rewriter.now(g.x.id));
  rewriter.copy(g.graph.nodes()[1]);
  const Rewritten result = rewriter.finish();
  EXPECT_EQ(result.graph->nodes().size(), 1U);
  EXPECT_EQ(result.graph->nodes()[0].inputs[0], *result.was[index_of(g.x.id)]);
}

TEST(Rewriter, TellsTheOpsOfNodesApart) {
  const RewrittenGraph g;
  EXPECT_NE(as<Add>(g.graph.nodes()[0]), nullptr);
  EXPECT_EQ(as<Scale>(g.graph.nodes()[0]), nullptr);
}

TEST(CountReaders, CountsEveryOperandAndOutput) {
  const RewrittenGraph g;
  EXPECT_THAT(count_readers(g.graph), ElementsAre(3, 1, 1, 1))
      << "one node reads x twice and the host reads it once";
}

// Returns whether a table with one kernel of Add for nhwc images supports this signature.
bool runs_add(Layout image, Provider by, const TensorDesc& desc) {
  KernelTable table;
  table.add<Add>(
      [](const Add& /*op*/, const Signature& request) {
        const bool takes =
            request.in[0].layout == Layout::nhwc && request.out[0].layout == Layout::nhwc;
        return takes ? std::optional(KernelSpec{.in = request.in, .out = request.out})
                     : std::nullopt;
      },
      [](const Add& op, const Signature& /*signature*/) {
        return std::make_unique<ReferenceKernel>(op);
      },
      by);
  return runs(table, Add(), {desc, desc}, image);
}

TEST(Runs, AsksForImagesInTheLayoutOfTheGraph) {
  EXPECT_TRUE(runs_add(Layout::nhwc, Provider::own, rewritten_desc()));
  EXPECT_FALSE(runs_add(Layout::nchw, Provider::own, rewritten_desc()));
  EXPECT_FALSE(runs_add(Layout::nhwc, Provider::own, described({8}, DataType::f32)))
      << "a vector is no image";
}

TEST(Runs, TakesLoopsForNoKernel) {
  EXPECT_TRUE(runs_add(Layout::nhwc, Provider::cudnn, rewritten_desc()));
  EXPECT_FALSE(runs_add(Layout::nhwc, Provider::loops, rewritten_desc()));
}

}  // namespace
}  // namespace cnn::layers
