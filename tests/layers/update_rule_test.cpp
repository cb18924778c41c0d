#include "layers/update_rule.h"

#include <cmath>
#include <cstddef>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <string_view>

#include "runtime/error.h"

namespace cnn::layers {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::ThrowsMessage;

TEST(Rules, AreFoundByName) {
  EXPECT_EQ(find_rule("sgd").slots.size(), 0);
  EXPECT_EQ(find_rule("momentum").rule, Rule::momentum);
  EXPECT_EQ(find_rule("rmsprop").slots[0].suffix, "RMSProp");
  EXPECT_EQ(find_rule("rmsprop").slots[0].start, 1);
  EXPECT_EQ(find_rule("rmsprop").slots[1].suffix, "RMSProp_1");
  EXPECT_EQ(find_rule("adam").slots[1].suffix, "Adam_1");
  EXPECT_THAT(
      [] { find_rule("lars"); },
      ThrowsMessage<Error>(AllOf(HasSubstr("'lars'"), HasSubstr("momentum, sgd, rmsprop, adam"))));
}

TEST(Rules, StandInTheOrderOfTheirEnumeration) {
  for (std::size_t i = 0; i < rules().size(); ++i) {
    EXPECT_EQ(static_cast<std::size_t>(rules()[i].rule), i);
  }
}

// Applies one step of a rule to a weight of 2 with gradient 3 and learning rate 0.5, and keeps the
// slots.
struct OneStep {
  explicit OneStep(std::string_view name, float first = 0, float second = 0)
      : slot0(first), slot1(second) {
    const RuleRow& row = find_rule(name);
    value = row.step(row.factors({}), 0.5, {2, 3, &slot0, &slot1});
  }

  float slot0, slot1;
  double value = 0;
};

TEST(RuleStep, SubtractsTheGradientBySgd) { EXPECT_DOUBLE_EQ(OneStep("sgd").value, 0.5); }

TEST(RuleStep, LooksAheadByNesterovMomentum) {
  const OneStep step("momentum", 10);
  EXPECT_FLOAT_EQ(step.slot0, 12);                              // 0.9 * 10 + 3
  EXPECT_NEAR(step.value, 2 - 0.5 * 3 - 0.5 * 0.9 * 12, 1e-6);  // not 2 - 0.5 * 12
}

TEST(RuleStep, DividesByTheMeanSquareByRmsprop) {
  const OneStep step("rmsprop", 1, 0.1F);
  EXPECT_FLOAT_EQ(step.slot0, 1.8F);  // 0.9 * 1 + 0.1 * 9
  EXPECT_NEAR(step.slot1, 0.9 * 0.1 + 1.5 / std::sqrt(1.8 + 1), 1e-6);
  EXPECT_NEAR(step.value, 2 - static_cast<double>(step.slot1), 1e-12);
}

TEST(RuleStep, KeepsBothMomentsByAdam) {
  const OneStep step("adam", 1, 4);
  EXPECT_FLOAT_EQ(step.slot0, 1.2F);    // 0.9 * 1 + 0.1 * 3
  EXPECT_FLOAT_EQ(step.slot1, 4.005F);  // 0.999 * 4 + 0.001 * 9
  EXPECT_NEAR(step.value, 2 - 0.5 * 1.2 / std::sqrt(4.005), 1e-6);
}

TEST(RuleFactors, AreTheAttributesOfTheirOwnRule) {
  const UpdateAttributes all{.momentum = 0.1,
                             .rmsprop_decay = 0.2,
                             .rmsprop_momentum = 0.3,
                             .rmsprop_epsilon = 0.4,
                             .adam_beta1 = 0.5,
                             .adam_beta2 = 0.6,
                             .adam_epsilon = 0.7};
  const auto factors_of = [&](std::string_view name) { return find_rule(name).factors(all); };
  EXPECT_EQ(factors_of("momentum").momentum, 0.1);
  EXPECT_EQ(factors_of("rmsprop").keep0, 0.2);
  EXPECT_EQ(factors_of("rmsprop").momentum, 0.3);
  EXPECT_EQ(factors_of("rmsprop").epsilon, 0.4);
  EXPECT_EQ(factors_of("adam").keep0, 0.5);
  EXPECT_EQ(factors_of("adam").keep1, 0.6);
  EXPECT_EQ(factors_of("adam").epsilon, 0.7);
}

TEST(Rules, HavePowersOfTheirBetasForTheBiasOfAdamAlone) {
  for (const RuleRow& row : rules()) {
    EXPECT_EQ(row.has_powers, row.name == "adam") << row.name;
  }
}

}  // namespace
}  // namespace cnn::layers
