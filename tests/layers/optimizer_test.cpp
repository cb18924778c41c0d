#include "layers/optimizer.h"

#include <cmath>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <limits>

#include "layers/dense.h"
#include "layers/operands.h"
#include "layers/passes/autodiff.h"
#include "layers/pool.h"
#include "runtime/error.h"
#include "tests/support/interpreter.h"

namespace cnn::layers {
namespace {

using testing::ElementsAre;

constexpr float infinity = std::numeric_limits<float>::infinity();

Value scalar_input(Graph& graph, const char* name) {
  return graph.input(name, described({}, DataType::f32));
}

// A graph with the scalar parameter "w" = 2, gradient 3 and learning rate 0.5.
struct OneWeight {
  explicit OneWeight(const OptimizerOptions& options, bool decays = true) {
    loss_seed(graph, options);
    const Value w =
        graph.parameter("w", described({}, DataType::f32), {.initializer = {}, .decay = decays});
    l2 = append_update(graph, std::vector{w}, std::vector{scalar_input(graph, "g")}, options);
    values = std::make_unique<tests::Interpreter>(graph);
    set("w", 2);
    set("g", 3);
    set("learning_rate", 0.5);
  }

  void set(std::string_view name, float value) { values->floats(name)[0] = value; }
  float get(std::string_view name) const { return values->floats(name)[0]; }

  Graph graph;
  Value l2;
  std::unique_ptr<tests::Interpreter> values;
};

OptimizerOptions with_rule(Rule rule) {
  OptimizerOptions options;
  options.update.rule = rule;
  return options;
}

TEST(Update, StepsBySgd) {
  OneWeight one(with_rule(Rule::sgd));
  one.values->run();
  EXPECT_FLOAT_EQ(one.get("w"), 0.5F);  // 2 - 0.5 * 3
}

TEST(Update, StepsByNesterovMomentum) {
  OneWeight one(with_rule(Rule::momentum));
  one.set("w/Momentum", 10);
  one.values->run();
  EXPECT_FLOAT_EQ(one.get("w/Momentum"), 12);            // 0.9 * 10 + 3
  EXPECT_FLOAT_EQ(one.get("w"), 2 - 1.5F - 0.45F * 12);  // - lr g - lr m a
}

TEST(Update, StepsByRmsprop) {
  OneWeight one(with_rule(Rule::rmsprop));
  one.set("w/RMSProp", 1);
  one.set("w/RMSProp_1", 0.25);
  one.values->run();
  EXPECT_FLOAT_EQ(one.get("w/RMSProp"), 1.8F);  // 0.9 + 0.1 * 9
  const double moment = 0.9 * 0.25 + 1.5 / std::sqrt(2.8);
  EXPECT_NEAR(one.get("w/RMSProp_1"), moment, 1e-6);
  EXPECT_NEAR(one.get("w"), 2 - moment, 1e-6);
}

TEST(Update, StepsByAdam) {
  OneWeight one(with_rule(Rule::adam));
  one.set("w/Adam", 0);
  one.set("w/Adam_1", 0);
  one.set("beta1_power", 0.9);
  one.set("beta2_power", 0.999);
  one.values->run();
  EXPECT_NEAR(one.get("w/Adam"), 0.3, 1e-6);
  EXPECT_NEAR(one.get("w/Adam_1"), 0.009, 1e-6);
  // Adam's first step has the length of the learning rate for any gradient.
  EXPECT_NEAR(one.get("w"), 1.5, 1e-5);
  EXPECT_NEAR(one.get("beta1_power"), 0.81, 1e-6);
  EXPECT_NEAR(one.get("beta2_power"), 0.998001, 1e-6);
}

TEST(Update, AddsWeightDecayAndReportsTheOldSquares) {
  OptimizerOptions options = with_rule(Rule::sgd);
  options.update.weight_decay = 0.25;
  OneWeight one(options);
  one.values->run();
  EXPECT_FLOAT_EQ(one.get("w"), 2 - 0.5F * 3.5F);
  EXPECT_FLOAT_EQ(one.values->scalar(one.l2), 2);  // 2^2 / 2
}

TEST(Update, LeavesParametersWithoutDecayOutOfTheL2Term) {
  OptimizerOptions options = with_rule(Rule::sgd);
  options.update.weight_decay = 0.25;
  OneWeight one(options, false);
  one.values->run();
  EXPECT_FLOAT_EQ(one.get("w"), 0.5F);
  EXPECT_EQ(one.values->scalar(one.l2), 0);
}

TEST(Update, UnscalesThenDecaysThenClips) {
  OptimizerOptions options = with_rule(Rule::sgd);
  options.update.loss_scale = 4;
  options.update.weight_decay = 0.25;
  options.update.clip = 1;
  OneWeight one(options);
  one.values->run();  // 3 / 4 + 0.25 * 2 = 1.25, clipped to 1
  EXPECT_FLOAT_EQ(one.get("w"), 1.5F);
  one.set("w", 2);
  one.set("g", -30);
  one.values->run();
  EXPECT_FLOAT_EQ(one.get("w"), 2.5F);
}

struct ScaleRow {
  float scale, count, gradient;
  float scale_after, count_after;
  bool updates;
};

// The rows come from the original's own tests, with N = 10.
TEST(LossScale, MovesAsTheOriginal) {
  constexpr ScaleRow rows[] = {
      {4, 10, 3, 8, 0, true},
      {4, 9, 3, 4, 10, true},
      {4, 10, infinity, 2, 0, false},
      {4, 10, -infinity, 2, 0, false},
      {4, 10, std::numeric_limits<float>::quiet_NaN(), 2, 0, false},
  };
  for (const ScaleRow& row : rows) {
    OptimizerOptions options = with_rule(Rule::momentum);
    options.update.automatic_loss_scale = true;
    options.loss_scale_every_n = 10;
    OneWeight one(options);
    one.set("loss_scale", row.scale);
    one.set("loss_scale_normal_steps", row.count);
    one.set("g", row.gradient);
    one.set("w/Momentum", 0);
    one.values->run();
    EXPECT_EQ(one.get("loss_scale"), row.scale_after);
    EXPECT_EQ(one.get("loss_scale_normal_steps"), row.count_after);
    const float g = row.gradient / row.scale;
    EXPECT_FLOAT_EQ(one.get("w"), row.updates ? 2 - 0.5F * g - 0.45F * g : 2);
    EXPECT_FLOAT_EQ(one.get("w/Momentum"), row.updates ? g : 0);
  }
}

TEST(LossScale, StaysWhenItIsConstant) {
  OptimizerOptions options = with_rule(Rule::sgd);
  options.update.loss_scale = 4;
  OneWeight one(options);
  EXPECT_FALSE(one.graph.find("loss_scale"));
  one.set("g", infinity);
  one.values->run();
  EXPECT_EQ(one.get("w"), -infinity);  // applied, because no loss scale checks for infinities
}

TEST(LossScale, KeepsAdamsPowersWhenAStepIsSkipped) {
  OptimizerOptions options = with_rule(Rule::adam);
  options.update.automatic_loss_scale = true;
  OneWeight one(options);
  one.set("g", infinity);
  one.set("beta1_power", 0.5);
  one.values->run();
  EXPECT_EQ(one.get("beta1_power"), 0.5F);
  EXPECT_EQ(one.get("w"), 2);
}

TEST(LossScale, IsTheSeedOfTheGradients) {
  Graph graph;
  OptimizerOptions options;
  options.update.loss_scale = 128;
  const Value constant = loss_seed(graph, options);
  options.update.automatic_loss_scale = true;
  const Value state = loss_seed(graph, options);
  EXPECT_EQ(graph.info(state.id).name, "loss_scale");
  EXPECT_EQ(graph.info(state.id).initializer.mean, 128);
  EXPECT_TRUE(graph.info(state.id).saved);
  tests::Interpreter values(graph);
  values.run();
  EXPECT_EQ(values.scalar(constant), 128);
}

// Three parameters of 16, 16 and 64 bytes, whose gradients appear in the order 2, 0, 1.
struct Buckets {
  explicit Buckets(std::size_t bytes) {
    std::vector<Value> parameters;
    for (const std::int64_t size : {4, 4, 16}) {
      parameters.push_back(graph.parameter("w" + std::to_string(parameters.size()),
                                           described({size}, DataType::f32), {}));
    }
    std::vector<Value> gradients(3);
    for (const std::size_t i : {2, 0, 1}) {
      gradients[i] = same_as(parameters[i]);
    }
    OptimizerOptions options;
    options.bucket_bytes = bytes;
    append_update(graph, parameters, gradients, options);
  }

  Value same_as(Value x) { return emit(Same(), {x}); }

  // The tests need any op with one input and one output.
  struct Same final : Op {
    std::string_view name() const override { return "same"; }
    std::vector<TensorDesc> infer(std::span<const TensorDesc> in) const override { return {in[0]}; }
    void reference(std::span<const TensorView>, std::span<const TensorView>) const override {}
  };

  std::vector<std::vector<std::string>> parameters_of_updates() const {
    std::vector<std::vector<std::string>> result;
    for (const Node& node : graph.nodes()) {
      if (const auto* update = dynamic_cast<const Update*>(node.op.get())) {
        auto& names = result.emplace_back();
        for (std::size_t i = 0; i < update->parameters; ++i) {
          names.push_back(graph.info(node.inputs[update->first_parameter() + i]).name);
        }
      }
    }
    return result;
  }

  Graph graph;
};

TEST(AppendUpdate, FillsBucketsInTheOrderOfTheGradients) {
  using Names = std::vector<std::string>;
  EXPECT_THAT(Buckets(1000).parameters_of_updates(), ElementsAre(Names{"w2", "w0", "w1"}));
  EXPECT_THAT(Buckets(64).parameters_of_updates(), ElementsAre(Names{"w2"}, Names{"w0", "w1"}));
  EXPECT_THAT(Buckets(1).parameters_of_updates(),
              ElementsAre(Names{"w2"}, Names{"w0"}, Names{"w1"}));
}

TEST(AppendUpdate, AddsTheL2SumsOfAllBuckets) {
  Graph graph;
  OptimizerOptions options;
  options.update.weight_decay = 1;
  options.bucket_bytes = 1;
  std::vector<Value> parameters;
  std::vector<Value> gradients;
  for (const char* name : {"a", "b", "c"}) {
    parameters.push_back(graph.parameter(name, described({2}, DataType::f32), {}));
    gradients.push_back(graph.input(std::string("d") + name, described({2}, DataType::f32)));
  }
  const Value l2 = append_update(graph, parameters, gradients, options);
  tests::Interpreter values(graph);
  for (const char* name : {"a", "b", "c"}) {
    std::ranges::fill(values.floats(name), 2.0F);
  }
  values.run();
  EXPECT_FLOAT_EQ(values.scalar(l2), 12);  // 6 elements of 2^2 / 2
}

// Returns the L2 norm of six parameters of very different magnitudes.
float l2_in_buckets_of(std::size_t bytes) {
  Graph graph;
  OptimizerOptions options;
  options.update.weight_decay = 1;
  options.bucket_bytes = bytes;
  std::vector<Value> parameters;
  std::vector<Value> gradients;
  for (const char* name : {"a", "b", "c", "d", "e", "f"}) {
    parameters.push_back(graph.parameter(name, described({50}, DataType::f32), {}));
    gradients.push_back(graph.input(std::string("d") + name, described({50}, DataType::f32)));
  }
  const Value l2 = append_update(graph, parameters, gradients, options);
  tests::Interpreter values(graph);
  float value = 1e-4F;
  for (const char* name : {"a", "b", "c", "d", "e", "f"}) {
    for (float& w : values.floats(name)) {
      value = value > 1e3F ? 1.3e-4F : value * 1.17F;
      w = value;
    }
  }
  values.run();
  return static_cast<float>(values.scalar(l2));
}

TEST(AppendUpdate, MakesTheSameL2SumToTheBitWhateverTheBuckets) {
  const float whole = l2_in_buckets_of(1 << 20);
  for (const std::size_t bytes : {1, 200, 400, 600, 800, 1000}) {
    EXPECT_EQ(l2_in_buckets_of(bytes), whole) << bytes;
  }
}

TEST(AppendUpdate, NamesSlotsAsCheckpointsDo) {
  Graph graph;
  const Value w =
      graph.parameter("v/cg/conv0/conv2d/kernel", described({4, 3, 2, 2}, DataType::f32),
                      {.initializer = {}, .saved_as = SavedAs::hwio});
  append_update(graph, std::vector{w},
                std::vector{graph.input("g", described({4, 3, 2, 2}, DataType::f32))},
                with_rule(Rule::rmsprop));
  const TensorInfo& slot = graph.info(*graph.find("v/cg/conv0/conv2d/kernel/RMSProp"));
  EXPECT_EQ(slot.role, Role::state);
  EXPECT_EQ(slot.initializer.mean, 1);
  EXPECT_EQ(slot.saved_as, SavedAs::hwio);
  EXPECT_TRUE(slot.saved);
  EXPECT_TRUE(graph.find("v/cg/conv0/conv2d/kernel/RMSProp_1"));
}

struct Training {
  std::string_view rule;
  std::vector<double> total, base;
  double a = 0, b = 0;  // after four steps
};

// Expected values of the original's tests of variable updates. The model is y = x A B with A = 1
// and B = 2, and the loss is mean(y). The inputs -1 to 14 come in four steps of four; weight decay
// and learning rate are 1/16.
const std::vector<Training>& trainings() {
  static const std::vector<Training> rows{
      {"sgd",
       {1.15625, 8.38563776, 5.53226187, -9.58548351},
       {1, 8.23823547, 5.43845897, -9.66270669},
       -1.67783423,
       1.88447646},
      {"momentum",
       {1.15625, 7.71236472, -2.52466576, -36.7086006},
       {1, 7.57260818, -2.58850108, -36.9104342},
       -5.22019824,
       4.41571412},
      {"rmsprop",
       {1.15625, 8.60833416, 11.3735971, 7.01656766},
       {1, 8.45842297, 11.2549594, 6.94104961},
       -0.107955412,
       1.14803065},
      {"adam",
       {1.15625, 8.31860382, 14.3401158, 19.1731446},
       {1, 8.17382842, 14.2044711, 19.0467465},
       0.77622894,
       1.77429894},
  };
  return rows;
}

// Computes mean(x) A B as a mean over pixels and two matrix products.
Value scalar_model(Graph& graph, Value a, Value b) {
  const Value x = graph.input("x", described({1, 1, 2, 2}, DataType::f32));
  const Value y = emit(Dense({.bias = false}), {spatial_mean(x), a});
  return emit(Dense({.bias = false}), {y, b});
}

void train(const Training& row) {
  Graph graph;
  const TensorDesc desc = described({1, 1}, DataType::f32);
  const Value a = graph.parameter("A", desc, {});
  const Value b = graph.parameter("B", desc, {});
  const Value loss = scalar_model(graph, a, b);
  OptimizerOptions options = with_rule(find_rule(row.rule).rule);
  options.update.weight_decay = 1.0 / 16;
  const auto grads = gradients(loss, std::vector{a, b}, graph.input("seed", desc));
  const Value l2 =
      append_update(graph, std::vector{a, b}, std::vector{*grads[0], *grads[1]}, options);
  tests::Interpreter values(graph);
  for (const TensorInfo& info : graph.tensors()) {
    if (info.role == Role::state) {
      std::ranges::fill(values.floats(info.name), static_cast<float>(info.initializer.mean));
    }
  }
  values.floats("A")[0] = 1;
  values.floats("B")[0] = 2;
  values.floats("seed")[0] = 1;
  values.floats("learning_rate")[0] = 1.0F / 16;
  for (std::size_t step = 0; step < 4; ++step) {
    for (std::size_t i = 0; i < 4; ++i) {
      values.floats("x")[i] = static_cast<float>(4 * step + i) - 1;
    }
    values.run();
    const double base = values.scalar(loss);
    EXPECT_NEAR(base, row.base[step], 1e-5 * std::abs(row.base[step]));
    EXPECT_NEAR(base + values.scalar(l2) / 16, row.total[step], 1e-5 * std::abs(row.total[step]));
  }
  EXPECT_NEAR(values.floats("A")[0], row.a, 1e-5 * std::abs(row.a));
  EXPECT_NEAR(values.floats("B")[0], row.b, 1e-5 * std::abs(row.b));
}

TEST(Training, FollowsTheOriginalForFourSteps) {
  for (const Training& row : trainings()) {
    SCOPED_TRACE(row.rule);
    train(row);
  }
}

}  // namespace
}  // namespace cnn::layers
