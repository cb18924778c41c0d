#include "layers/passes/fuse_conv_plan.h"

#include <functional>
#include <gtest/gtest.h>
#include <memory>
#include <optional>
#include <string_view>
#include <vector>

#include "layers/activation.h"
#include "layers/batch_norm.h"
#include "layers/conv.h"
#include "layers/fused_conv.h"
#include "layers/passes/fuse.h"
#include "runtime/cpu/reference_kernel.h"

namespace cnn::layers {
namespace {

using Accepts = std::function<bool(const Op&)>;
using Form = NormPlan::Form;

// A table that can describe the ops that are accepted, and run none.
KernelTable table_of(const Accepts& accepts) {
  KernelTable table;
  table.otherwise(
      [accepts](const Op& op, const Signature& request) {
        return accepts(op) ? std::optional(KernelSpec{.in = request.in, .out = request.out})
                           : std::nullopt;
      },
      [](const Op& op, const Signature& /*signature*/) {
        return std::make_unique<ReferenceKernel>(op);
      });
  return table;
}
bool all(const Op& /*op*/) { return true; }

// Two convolutions, each with a batch norm and a ReLU: conv 0, norm 1, conv 2, norm 3.
class ConvFusionPlan : public testing::Test {
 protected:
  ConvFusionPlan() {
    Graph forward;
    const Value x = forward.input("x", {.shape = {2, 8, 6, 6}});
    const Value y = unit(unit(x));
    forward.output("y", y);
    graph = fuse_activations(forward).graph;
    for (NodeIndex i = 0; i < graph->nodes().size(); ++i) {
      const std::string_view name = graph->nodes()[i].op->name();
      (name == "conv" ? convs : norms).push_back(i);
    }
  }

  static Value unit(Value x) { return conv_bn(x, {.filters = 8}, {.scale = true}); }

  ConvFusion plan(const Accepts& accepts, const PlainNorms& plain = {}) const {
    return plan_conv_fusion(*graph, table_of(accepts), Layout::nhwc, plain);
  }

  std::shared_ptr<Graph> graph;
  std::vector<NodeIndex> convs, norms;
};

TEST_F(ConvFusionPlan, NormalisesOnLoadWhatOnlyAConvolutionReads) {
  const ConvFusion decided = plan(all);
  EXPECT_EQ(decided.norms.at(norms[0]).form, Form::on_load);
  EXPECT_EQ(decided.norms.at(norms[0]).conv, convs[0]);
  EXPECT_TRUE(decided.convs.at(convs[0]).statistics);
  EXPECT_EQ(decided.convs.at(convs[1]).norm, norms[0]);
}

TEST_F(ConvFusionPlan, StoresWhatTheHostReads) {
  const ConvFusion decided = plan(all);
  EXPECT_EQ(decided.norms.at(norms[1]).form, Form::stored);
  EXPECT_EQ(decided.norms.at(norms[1]).conv, convs[1]);
  EXPECT_EQ(decided.fused_norm(norms[1]), &decided.norms.at(norms[1]));
}

TEST_F(ConvFusionPlan, StoresEachNormWhereNoKernelHasAPrologue) {
  const ConvFusion decided = plan([](const Op& op) {
    const auto* conv = dynamic_cast<const FusedConv*>(&op);
    return conv == nullptr || !conv->attributes.prologue;
  });
  EXPECT_EQ(decided.norms.at(norms[0]).form, Form::stored);
  EXPECT_FALSE(decided.convs.at(convs[1]).norm);
  EXPECT_TRUE(decided.convs.at(convs[1]).statistics);
}

// No convolution limits what it normalises on load.
TEST_F(ConvFusionPlan, StoresNormsWhoseReluHasALimit) {
  Graph forward;
  const Value x = forward.input("x", {.shape = {2, 8, 6, 6}});
  const ConvOptions bare{.filters = 8, .relu = false};
  const Value y = relu6(conv_bn(x, bare, {.scale = true}));
  forward.output("y", conv_bn(y, bare, {.scale = true}));
  graph = fuse_activations(forward).graph;
  const ConvFusion decided = plan(all);
  EXPECT_EQ(decided.norms.at(1).form, Form::stored);
  EXPECT_TRUE(decided.convs.at(0).statistics);
  EXPECT_FALSE(decided.convs.at(2).norm);
}

TEST_F(ConvFusionPlan, KeepsAllNormsWhereTheTableRunsNoFusedConvolution) {
  const ConvFusion decided = plan([](const Op& op) { return op.name() != "fused_conv"; });
  for (const NodeIndex norm : norms) {
    EXPECT_EQ(decided.norms.at(norm).form, Form::kept);
    EXPECT_EQ(decided.fused_norm(norm), nullptr);
  }
  EXPECT_TRUE(decided.convs.empty());
}

TEST_F(ConvFusionPlan, LeavesOutNormsThatAreToStayPlain) {
  const ConvFusion decided = plan(all, {norms[0]});
  EXPECT_FALSE(decided.norms.contains(norms[0]));
  EXPECT_FALSE(decided.convs.contains(convs[0]));
  EXPECT_EQ(decided.fused_norm(norms[0]), nullptr);
  EXPECT_EQ(decided.norms.at(norms[1]).form, Form::stored);
}

TEST_F(ConvFusionPlan, AbsorbsNothingWithoutGradients) {
  const ConvFusion decided = plan(all);
  EXPECT_TRUE(decided.backward.empty());
  EXPECT_TRUE(decided.weights.empty());
  EXPECT_EQ(decided.absorbed, std::vector<bool>(graph->nodes().size(), false));
}

}  // namespace
}  // namespace cnn::layers
