#include "layers/passes/image_region.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "layers/activation.h"
#include "layers/conv.h"
#include "layers/dense.h"
#include "layers/elementwise.h"
#include "layers/operands.h"
#include "layers/passes/rewriter.h"

namespace cnn::layers {
namespace {

using testing::ElementsAre;

bool is_conv_or_relu(const Node& node) { return is_any_of<Conv2d, Relu>(node); }

// Returns conv, relu, conv, and an op that takes all of its images.
struct Chain {
  Graph graph;
  Value x = graph.input("x", described({2, 3, 4, 4}, DataType::f32));
  Value first = conv(x, {.filters = 2, .relu = false});
  Value gated = relu(first);
  Value second = conv(gated, {.filters = 2, .relu = false});
  Value rows = flatten(second);
};

TEST(SliceKinds, AreWholeBehindAnOpThatCannotSlice) {
  const Chain chain;
  const SliceKinds kinds(chain.graph, is_conv_or_relu);
  EXPECT_EQ(kinds[chain.x.id], SliceKind::sliced);
  EXPECT_EQ(kinds[chain.second.id], SliceKind::sliced);
  EXPECT_EQ(kinds[chain.rows.id], SliceKind::whole);
  EXPECT_EQ(kinds[chain.graph.nodes()[0].inputs[1]], SliceKind::shared);
}

TEST(SliceKinds, ShareWhatDependsOnVariablesOnly) {
  Chain chain;
  const Value weights{&chain.graph, chain.graph.nodes()[0].inputs[1]};
  const Value half = scale(weights, 0.5F);  // which cannot slice, and need not
  const SliceKinds kinds(chain.graph, is_conv_or_relu);
  EXPECT_EQ(kinds[half.id], SliceKind::shared);
}

TEST(FindCut, EndsBeforeATensorThatIsReadBehindIt) {
  Chain chain;
  const SliceKinds kinds(chain.graph, is_conv_or_relu);
  EXPECT_EQ(find_cut(chain.graph, kinds), chain.second.id);
  EXPECT_THAT(region_of(chain.graph, kinds, chain.gated.id), ElementsAre(true, true, false, false));
  chain.graph.output("gated", chain.gated);
  EXPECT_EQ(find_cut(chain.graph, SliceKinds(chain.graph, is_conv_or_relu)), chain.gated.id);
}

TEST(IsBatch, AreImagesFromOutside) {
  Chain chain;
  EXPECT_TRUE(is_batch(chain.graph.info(chain.x.id)));
  EXPECT_FALSE(is_batch(chain.graph.info(chain.first.id)));
  EXPECT_FALSE(is_batch(chain.graph.info(chain.graph.nodes()[0].inputs[1])));
  EXPECT_FALSE(
      is_batch(chain.graph.info(chain.graph.input("m", described({2, 3}, DataType::f32)).id)));
}

}  // namespace
}  // namespace cnn::layers
