// Tests which batch norms are fused for given times; the times come from tables, not from a clock.

#include "layers/passes/timed_fusion.h"

#include <algorithm>
#include <functional>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <map>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "layers/activation.h"
#include "layers/batch_norm.h"
#include "layers/dense.h"
#include "layers/elementwise.h"
#include "layers/loss.h"
#include "layers/operands.h"
#include "layers/passes/fuse.h"
#include "layers/passes/fuse_conv.h"
#include "layers/passes/pipeline.h"
#include "layers/pool.h"
#include "runtime/cpu/reference_kernel.h"

namespace cnn::layers {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

// Returns a table that runs every op by its reference loops.
KernelTable table_of_all() {
  KernelTable table;
  table.otherwise(
      [](const Op& /*op*/, const Signature& request) {
        return std::optional(KernelSpec{.in = request.in, .out = request.out});
      },
      [](const Op& op, const Signature& /*signature*/) {
        return std::make_unique<ReferenceKernel>(op);
      });
  return table;
}

constexpr BatchNormOptions with_gamma{.decay = 0.9, .epsilon = 1e-5, .scale = true};

// A step with three equal norms of 4 channels, two of 6 channels, and two of 8 channels that end
// blocks.
struct TimedStep {
  TimedStep() {
    Graph forward;
    Value x = forward.input("x", described({2, 8, 6, 6}, DataType::f32));
    x = block(x, {4, 4, 4});
    x = block(x, {6, 6});
    const Value logits = dense(spatial_mean(x), {.units = 10, .relu = false});
    const Value loss = softmax_cross_entropy(logits, forward.input("labels", {{2}, DataType::i32}));
    const Rewritten start = fuse_activations(forward);
    graph = start.graph;
    append_training(*graph, {graph.get(), start.was[index_of(loss.id)].value()},
                    {.optimizer = {.update = {.rule = Rule::momentum}}});
    for (const auto& [node, norm] : plan_conv_fusion(*graph, table, Layout::nchw).norms) {
      if (norm.form != NormPlan::Form::kept) {
        fusible.push_back(node);
      }
    }
  }

  static Value block(Value x, const std::vector<std::int64_t>& filters) {
    Value y = x;
    for (const std::int64_t count : filters) {
      y = conv_bn(y, {.filters = count}, with_gamma);
    }
    return relu(add(x, conv_bn(y, {.filters = 8, .relu = false}, with_gamma)));
  }

  std::shared_ptr<const Graph> build(const PlainNorms& plain) const {
    return fuse_convolutions(*graph, table, Layout::nchw, plain).graph;
  }

  PlainNorms decide(const NodeSeconds& seconds) const {
    return norms_faster_plain(
        *graph, fusible, [this](const PlainNorms& plain) { return build(plain); }, seconds);
  }

  // Returns the channel counts of the norms in the order of the graph.
  std::vector<std::int64_t> channels_of(const PlainNorms& norms) const {
    std::vector<std::int64_t> channels;
    for (const NodeIndex norm : norms) {
      const TensorId image = graph->nodes()[norm].inputs.front();
      channels.push_back(graph->info(image).desc.shape[1]);
    }
    return channels;
  }

  KernelTable table = table_of_all();
  std::shared_ptr<Graph> graph;
  std::vector<NodeIndex> fusible;
};

bool is_of_plain_form(const Op& op) {
  return op.name() == "batch_norm" || op.name() == "batch_norm_backward";
}

// Returns the channel count of the norm to which a node belongs, which is that of its first image.
std::int64_t channels_of(const Signature& signature) { return signature.in.front().shape[1]; }

TEST(TimedFusion, KeepsEveryNormFusedThatIsNotFasterPlain) {
  const TimedStep step;
  ASSERT_EQ(step.fusible.size(), 7U);
  EXPECT_THAT(step.decide([](const std::string&, const Op& op, const Signature&) {
    return std::optional(is_of_plain_form(op) ? 9.0 : 1.0);
  }),
              IsEmpty());
  EXPECT_THAT(step.decide([](const std::string&, const Op&, const Signature&) {
    return std::optional(0.0);
  }),
              IsEmpty())
      << "both forms take equally long";
}

TEST(TimedFusion, LeavesTheNormsPlainThatAreFasterSoAndNoOthers) {
  const TimedStep step;
  const PlainNorms plain =
      step.decide([](const std::string&, const Op& op, const Signature& signature) {
        const bool cheap = is_of_plain_form(op) && channels_of(signature) == 6;
        return std::optional(cheap ? 0.01 : is_of_plain_form(op) ? 9.0 : 1.0);
      });
  EXPECT_THAT(step.channels_of(plain), ElementsAre(6, 6));
}

TEST(TimedFusion, LeavesAllPlainWhereThatIsTheFastest) {
  const TimedStep step;
  const PlainNorms plain = step.decide([](const std::string&, const Op& op, const Signature&) {
    return std::optional(is_of_plain_form(op) ? 0.01 : 1.0);
  });
  EXPECT_EQ(plain, PlainNorms(step.fusible.begin(), step.fusible.end()));
}

TEST(TimedFusion, KeepsFusedWhatItHasNoTimesFor) {
  const TimedStep step;
  const PlainNorms plain = step.decide(
      [](const std::string&, const Op& op, const Signature& signature) -> std::optional<double> {
        if (is_of_plain_form(op) && channels_of(signature) == 6) {
          return std::nullopt;
        }
        return is_of_plain_form(op) ? 0.01 : 1.0;
      });
  EXPECT_THAT(step.channels_of(plain), ElementsAre(4, 4, 4, 8, 8));
}

TEST(TimedFusion, AsksForNothingThatIsEqualInAllForms) {
  const TimedStep step;
  step.decide([](const std::string& key, const Op& op, const Signature&) {
    EXPECT_NE(op.name(), "update") << key;
    EXPECT_NE(op.name(), "dense") << key;
    EXPECT_NE(op.name(), "moving_average") << key;
    EXPECT_EQ(key.find('\t'), key.npos) << "it would break a line of the plan cache";
    EXPECT_EQ(key.find('\n'), key.npos);
    return std::optional(1.0);
  });
}

TEST(TimedFusion, HasKeysThatTellNodesApartByTheirAttributes) {
  std::map<std::string, std::string> ops;
  for (const bool relu : {false, true}) {
    Graph forward;
    const Value x = forward.input("x", described({2, 8, 6, 6}, DataType::f32));
    const Value y = conv_bn(x, {.filters = 4, .kernel = 3, .relu = relu}, with_gamma);
    const Value z = conv_bn(y, {.filters = 4, .kernel = 3, .padding = Padding::valid}, with_gamma);
    const Value logits = dense(spatial_mean(z), {.units = 10, .relu = false});
    const Value loss = softmax_cross_entropy(logits, forward.input("labels", {{2}, DataType::i32}));
    const Rewritten start = fuse_activations(forward);
    append_training(*start.graph, {start.graph.get(), start.was[index_of(loss.id)].value()}, {});
    const KernelTable table = table_of_all();
    const std::vector<NodeIndex> norms = [&] {
      std::vector<NodeIndex> found;
      for (const auto& [node, norm] : plan_conv_fusion(*start.graph, table, Layout::nchw).norms) {
        found.push_back(node);
      }
      return found;
    }();
    norms_faster_plain(
        *start.graph, norms,
        [&](const PlainNorms& plain) {
          return fuse_convolutions(*start.graph, table, Layout::nchw, plain).graph;
        },
        [&](const std::string& key, const Op& op, const Signature&) {
          const std::string what =
              std::string(op.name()) + (is_of_plain_form(op) && relu ? " relu" : "");
          EXPECT_EQ(ops.try_emplace(key, what).first->second.substr(0, op.name().size()),
                    op.name());
          return std::optional(1.0);
        });
  }
  const auto with = [&](const std::string& words) {
    return std::ranges::count_if(ops,
                                 [&](const auto& row) { return row.first.starts_with(words); });
  };
  EXPECT_EQ(with("batch_norm relu "), 2) << "both images have such a norm";
  EXPECT_EQ(with("batch_norm ("), 1);
  EXPECT_GE(with("fused_conv 3x3 stride 1x1 pad 1 1 1 1"), 1);
  EXPECT_GE(with("fused_conv 3x3 stride 1x1 pad 0 0 0 0"), 1);
}

// Returns the seconds of a whole step according to the table.
double sum_of(const Graph& step, const NodeSeconds& seconds) {
  double sum = 0;
  for (const Node& node : step.nodes()) {
    Signature signature;
    for (const TensorId input : node.inputs) {
      signature.in.push_back(step.info(input).desc);
    }
    for (const TensorId output : node.outputs) {
      signature.out.push_back(step.info(output).desc);
    }
    sum += node.inputs.empty() ? 0 : *seconds("", *node.op, signature);
  }
  return sum;
}

TEST(TimedFusion, IsNeverSlowerThanAllPlainOrAllFused) {
  const TimedStep step;
  std::size_t mixed = 0;
  for (unsigned seed = 0; seed < 60; ++seed) {
    const NodeSeconds seconds = [seed](const std::string&, const Op& op,
                                       const Signature& signature) {
      const std::string node = std::string(op.name()) + to_string(signature);
      std::minstd_rand random(static_cast<unsigned>(std::hash<std::string>()(node)) + seed);
      random.discard(2);
      return std::optional(static_cast<double>(random() % 1024));
    };
    const PlainNorms plain = step.decide(seconds);
    const PlainNorms all(step.fusible.begin(), step.fusible.end());
    const double decided = sum_of(*step.build(plain), seconds);
    EXPECT_LE(decided, sum_of(*step.build({}), seconds)) << seed;
    EXPECT_LE(decided, sum_of(*step.build(all), seconds)) << seed;
    EXPECT_EQ(step.decide(seconds), plain) << "a pure function";
    mixed += plain.empty() || plain == all ? 0 : 1;
  }
  EXPECT_GT(mixed, 20U) << "otherwise the times would test nothing";
}

TEST(TimedFusion, CountsTheNormsOfEachFormOfAPipeline) {
  Graph forward;
  const Value x = forward.input("x", described({2, 8, 6, 6}, DataType::f32));
  const Value y = TimedStep::block(TimedStep::block(x, {4, 4, 4}), {6, 6});
  const Value logits = dense(spatial_mean(y), {.units = 10, .relu = false});
  const Value loss = softmax_cross_entropy(logits, forward.input("labels", {{2}, DataType::i32}));
  forward.output("loss", loss);
  PipelineOptions options{.fusion = Fusion::conv, .loss = loss.id};
  options.training.optimizer.update.rule = Rule::momentum;
  const KernelTable table = table_of_all();
  const NormForms all = run_pipeline(forward, table, options).norms;
  EXPECT_EQ(all.fused, 7U);
  EXPECT_EQ(all.plain, 0U);
  options.seconds = [](const std::string&, const Op& op, const Signature& signature) {
    const bool cheap = is_of_plain_form(op) && channels_of(signature) == 4;
    return std::optional(cheap ? 0.01 : is_of_plain_form(op) ? 9.0 : 1.0);
  };
  const PipelineResult mixed = run_pipeline(forward, table, options);
  EXPECT_EQ(mixed.fusion, Fusion::conv);
  EXPECT_EQ(mixed.norms.fused, 4U);
  EXPECT_EQ(mixed.norms.plain, 3U);
  EXPECT_EQ(mixed.norms.faster_plain, 3U);
  options.fusion = Fusion::bn;
  EXPECT_EQ(run_pipeline(forward, table, options).norms.faster_plain, 0U);
}

}  // namespace
}  // namespace cnn::layers
