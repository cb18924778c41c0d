#include "tests/models/golden.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <gtest/gtest.h>
#include <map>
#include <string_view>

#include "models/catalog.h"
#include "tests/models/golden_run.h"
#include "tests/support/formula.h"

namespace cnn::tests {
namespace {

constexpr double logits_tolerance = 2e-5;  // relative to their norm
// It is relative to a typical logit, because single logits of deep networks scatter.
constexpr double one_logit_tolerance = 1e-3;
constexpr double deepest_logit_tolerance = 2e-3;  // for inception4 with its 149 convolutions

// The exact total loss, by PyTorch in float64, of steps whose result depends on rounding. There the
// golden file is as far from the exact value as its tolerance. A float32 result may then be near
// either value and must be within the file's tolerance of one of them.
struct Truth {
  std::string_view file;
  std::size_t step = 0;
  double total_loss = 0;
};
constexpr std::array truths{Truth{"inception3", 1, 7.595412},         // golden file: 7.599163
                            Truth{"resnet20_momentum", 4, 0.466649},  // golden file: 0.466168
                            Truth{"resnet50_v2", 2, 7.3630}};         // golden file: 7.3808

// Returns the golden file's total loss, or the exact one if that is known and nearer to `is`.
double expected_total(const Golden& golden, std::string_view file, std::size_t step, double is) {
  const auto* const found = std::find_if(truths.begin(), truths.end(), [&](const Truth& truth) {
    return truth.file == file && truth.step == step;
  });
  const double original = golden.total_loss[step];
  const bool nearer =
      found != truths.end() && std::abs(is - found->total_loss) < std::abs(is - original);
  return nearer ? found->total_loss : original;
}

// |is - expected| may be at most `tolerance` times the larger of the expected value and `least`,
// plus `slack`.
struct Allowed {
  double tolerance = 0, least = 0, slack = 0;
};

void expect_close(double is, double expected, const Allowed& allowed, const std::string& what) {
  const double most = allowed.tolerance * std::max(std::abs(expected), allowed.least);
  EXPECT_NEAR(is, expected, most + allowed.slack) << what;
}

void expect_logits(const GoldenRun& run, const Golden& golden,
                   double one_tolerance = one_logit_tolerance) {
  const std::span<const float> logits = run.output("logits");
  expect_close(norm(logits), golden.logits_norm, {logits_tolerance}, "norm of the logits");
  const double typical = golden.logits_norm / std::sqrt(static_cast<double>(logits.size()));
  for (std::size_t i = 0; i < golden.logits_head.size(); ++i) {
    expect_close(logits[i], golden.logits_head[i], {one_tolerance, typical},
                 "logit " + std::to_string(i));
  }
}

void expect_gradients(const GoldenRun& run, const Golden& golden) {
  double largest = 0;
  for (const auto& [name, gradient] : golden.gradients) {
    largest = std::max(largest, gradient.norm);
  }
  ASSERT_EQ(run.parameters().size(), golden.gradients.size());
  for (const auto& [name, expected] : golden.gradients) {
    const std::vector<float> gradient = run.gradient(name);
    expect_close(norm(gradient), expected.norm, {golden.gradient_tolerance, largest / 1000}, name);
  }
}

using Values = std::map<std::string, std::vector<float>>;

Values values_of(GoldenRun& run) {
  Values values;
  for (const std::string& name : run.variables()) {
    values[name] = run.variable(name);
  }
  return values;
}

double distance(std::vector<float> a, const std::vector<float>& b) {
  std::transform(a.begin(), a.end(), b.begin(), a.begin(), std::minus<>());
  return norm(a);
}

// The change of a variable is a sum of gradients, so it may deviate as much as they do. As the
// losses show, gradients deviate more in later steps than in the first.
void expect_variables(GoldenRun& run, const Golden& golden, const Values& before) {
  const std::vector<std::string> names = run.variables();
  EXPECT_EQ(names.size(), golden.after.size());
  double largest = 0;
  for (const auto& [name, length] : golden.after) {
    largest = std::max(largest, length);
  }
  const double tolerance = std::max(golden.tolerance.back(), 2e-4);
  const double of_movement =
      golden.gradient_tolerance * golden.tolerance.back() / golden.tolerance.front();
  for (const std::string& name : names) {
    const std::vector<float> now = run.variable(name);
    const double slack = of_movement * distance(now, before.at(name));
    expect_close(norm(now), golden.after.at(name), {tolerance, largest / 1000, slack},
                 name + " after the last step");
  }
}

void train(const Golden& golden, std::string_view file, const Engine& engine) {
  GoldenRun run(golden, engine);
  const Values before = values_of(run);
  for (std::size_t k = 0; k < golden.total_loss.size(); ++k) {
    run.step();
    const std::string step = " of step " + std::to_string(k);
    const double total = expected_total(golden, file, k, run.total_loss());
    const double l2 = golden.total_loss[k] - golden.base_loss[k];
    expect_close(run.total_loss(), total, {golden.tolerance[k]}, "loss" + step);
    expect_close(run.output("base_loss")[0], total - l2, {golden.tolerance[k], total},
                 "base loss" + step);
    if (k == 0) {
      expect_logits(run, golden,
                    file == "inception4" ? deepest_logit_tolerance : one_logit_tolerance);
      expect_gradients(run, golden);
    }
  }
  expect_variables(run, golden, before);
}

void evaluate(const Golden& golden, const Engine& engine) {
  GoldenRun run(golden, engine);
  run.step();
  expect_logits(run, golden);
  expect_close(run.output("base_loss")[0], golden.base_loss[0], {golden.tolerance[0]}, "loss");
  const std::span<const float> logits = run.output("logits");
  const std::size_t classes = logits.size() / golden.argmax.size();
  for (std::size_t n = 0; n < golden.argmax.size(); ++n) {
    const std::span<const float> row = logits.subspan(n * classes, classes);
    EXPECT_EQ(std::max_element(row.begin(), row.end()) - row.begin(), golden.argmax[n]);
  }
}

struct Case {
  const char* file;
  Engine (*engine)();
};

class GoldenTest : public testing::TestWithParam<Case> {};

TEST_P(GoldenTest, ComputesWhatTheOriginalDoes) {
  const Golden golden = read_golden(GetParam().file);
  const Engine engine = GetParam().engine();
  if (golden.training) {
    train(golden, GetParam().file, engine);
  } else {
    evaluate(golden, engine);
  }
}

std::string test_name(const testing::TestParamInfo<Case>& info) {
  std::string name = info.param.file;
  std::replace(name.begin(), name.end(), '.', '_');
  return name + (info.param.engine == reference_engine ? "_by_reference" : "_by_cpu_kernels");
}

INSTANTIATE_TEST_SUITE_P(
    Small, GoldenTest,
    testing::Values(Case{"trivial_momentum", reference_engine}, Case{"lenet_sgd", reference_engine},
                    Case{"lenet_adam", reference_engine}, Case{"trivial_momentum", cpu_engine},
                    Case{"lenet_sgd", cpu_engine}, Case{"lenet_adam", cpu_engine},
                    Case{"alexnet_cifar", cpu_engine}, Case{"resnet20_sgd", cpu_engine},
                    Case{"resnet20_momentum", cpu_engine}, Case{"resnet20_rmsprop", cpu_engine},
                    Case{"resnet20_v2", cpu_engine}, Case{"resnet56", cpu_engine},
                    Case{"densenet40_k12", cpu_engine}, Case{"mobilenet", cpu_engine},
                    Case{"nasnet_eval", cpu_engine}, Case{"nasnet_cifar_eval", cpu_engine},
                    Case{"official_resnet18", cpu_engine}),
    test_name);

// These take tens of seconds and several gigabytes.
INSTANTIATE_TEST_SUITE_P(
    SlowLarge, GoldenTest,
    testing::Values(Case{"alexnet_cifar", reference_engine}, Case{"resnet20_sgd", reference_engine},
                    Case{"resnet20_v2", reference_engine}, Case{"alexnet", cpu_engine},
                    Case{"overfeat", cpu_engine}, Case{"vgg11", cpu_engine},
                    Case{"vgg16_eval", cpu_engine}, Case{"googlenet", cpu_engine},
                    Case{"inception3", cpu_engine}, Case{"inception4", cpu_engine},
                    Case{"resnet50", cpu_engine}, Case{"resnet50_eval", cpu_engine},
                    Case{"resnet50_v1.5", cpu_engine}, Case{"resnet50_v2", cpu_engine},
                    Case{"resnet152", cpu_engine}, Case{"nasnet_eval", reference_engine},
                    Case{"official_resnet18_v2", cpu_engine}, Case{"official_resnet50", cpu_engine},
                    Case{"official_resnet50_v2", cpu_engine}),
    test_name);

// The labels in the golden files come from the same formula.
TEST(Formula, MakesTheLabelsOfTheGoldenFiles) {
  for (const char* file : {"lenet_sgd", "alexnet_cifar", "resnet56", "inception4"}) {
    const Golden golden = read_golden(file);
    const bool imagenet = golden.data_set == "imagenet";
    EXPECT_EQ(
        formula_labels(golden.batch_size, imagenet ? 1 : 0, imagenet ? 1000 : 10, golden.seed),
        golden.labels)
        << file;
  }
}

TEST(Formula, MakesUnitsInMinusOneToOne) {
  for (std::uint64_t i = 0; i < 1000; ++i) {
    const float u = formula_unit("images", i, 1);
    EXPECT_GE(u, -1);
    EXPECT_LT(u, 1);
  }
}

}  // namespace
}  // namespace cnn::tests
