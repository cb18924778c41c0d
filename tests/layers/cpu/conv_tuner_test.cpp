#include "layers/cpu/conv_tuner.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <tuple>
#include <vector>

#include "layers/cpu/kernels.h"
#include "runtime/error.h"
#include "tests/layers/cpu/run_op.h"
#include "tests/layers/cpu/small_conv.h"
#include "tests/support/error_of.h"
#include "tests/support/files.h"

namespace cnn::tests {
namespace {

using layers::Conv2d;
using layers::Conv2dBackwardWeights;
using layers::cpu::ConvCandidate;
using layers::cpu::ConvCandidates;
using layers::cpu::ConvTuner;
using testing::HasSubstr;
using testing::Not;

// Fake times by kernel name; all other kernels take a second. Counts the measurements.
struct FakeTimes {
  std::map<std::string, double> seconds;
  int measured = 0;

  ConvTuner::Measure measure() {
    return [this](const Op&, const Signature&, std::span<const ConvCandidate> all,
                  const KernelTable&) {
      ++measured;
      std::vector<double> result;
      for (const ConvCandidate& each : all) {
        result.push_back(seconds.contains(each.name) ? seconds.at(each.name) : 1);
      }
      return result;
    };
  }
};

ConvTuner::Measure never_asked() {
  return [](const Op&, const Signature&, std::span<const ConvCandidate>,
            const KernelTable&) -> std::vector<double> { throw Error("nothing may be timed"); };
}

ChoiceFile cache(const std::string& path, const std::string& device = "cpu") {
  return {
      path, {.device = device, .version = "1", .is_choice = layers::cpu::is_candidate_name}, true};
}

std::string chosen(ConvTuner& tuner, const Op& op, const Signature& request) {
  const std::optional<ConvCandidate> choice = tuner.choose(op, request);
  return choice ? choice->name : "rules";
}

TEST(ConvChoiceTuner, ComputesTheConvolutionByEachCandidate) {
  const ConvCandidates candidates(here(), true);
  for (const Layer& layer : {Layer(3), Layer(1), Layer(5)}) {
    const Conv2d forward = layer.forward();
    const Conv2dBackwardWeights gradient = layer.gradient();
    const auto x = test::random_values(layer.x.shape, DataType::f32, 1);
    const auto w = test::random_values(layer.w.shape, DataType::f32, 2);
    const auto y = test::random_values(layer.y.shape, DataType::f32, 3);
    for (const auto& [op, in, request] :
         {std::tuple<const Op*, std::vector<test::Values>, Signature>{
              &forward, {x, w}, layer.forwards()},
          {&gradient, {x, y}, layer.gradients()}}) {
      const auto expected = test::run_reference(*op, in);
      const Signature settled = candidates.settled(*op, request).value();
      const std::vector<std::string> all = names(candidates.offers(*op, settled));
      for (const std::string& name : all) {
        FakeTimes times{.seconds = {{name, 0.5}}};
        const auto tuner = std::make_shared<ConvTuner>(layers::cpu::ConvTunerOptions{},
                                                       times.measure(), std::nullopt);
        KernelTable table;
        layers::cpu::add_tuned_rows(table, tuner);
        layers::cpu::add_kernels(table);
        EXPECT_EQ(chosen(*tuner, *op, request), all.size() == 1 ? "rules" : name);
        const test::Ran ran = test::run_fast(table, *op, in, layer.x.layout);
        EXPECT_LT(test::distance(ran.out[0], expected[0]), 1e-4) << op->name() << " " << name;
      }
    }
  }
}

TEST(ConvChoiceTuner, TakesTheFastestAndAsksOnce) {
  FakeTimes times{.seconds = {{"winograd 2x2", 0.25}, {"winograd 4x4", 0.5}}};
  ConvTuner tuner({}, times.measure(), std::nullopt);
  const Layer layer(3);
  EXPECT_EQ(chosen(tuner, layer.forward(), layer.forwards()), "winograd 2x2");
  EXPECT_EQ(chosen(tuner, layer.forward(), layer.forwards()), "winograd 2x2");
  EXPECT_EQ(times.measured, 1);
  EXPECT_EQ(chosen(tuner, Layer(3, 1, 14).forward(), Layer(3, 1, 14).forwards()), "winograd 2x2");
  EXPECT_EQ(times.measured, 2) << "another shape";
  EXPECT_EQ(tuner.counts().tuned, 2U);
}

TEST(ConvChoiceTuner, AnswersARequestInTheLayoutsOfItsKernelWithThatKernel) {
  const Layer layer(1, 2);
  const std::vector<std::string> all = offered(layer.forward(), layer.forwards());
  if (all.size() == 1) {
    GTEST_SKIP() << "there is no choice with these instruction sets: " << all[0];
  }
  for (const std::string& name : all) {
    FakeTimes times{.seconds = {{name, 0.5}}};
    ConvTuner tuner({}, times.measure(), std::nullopt);
    const KernelSpec spec = tuner.choose(layer.forward(), layer.forwards()).value().spec;
    const auto again = tuner.choose(layer.forward(), {.in = spec.in, .out = spec.out});
    ASSERT_TRUE(again);
    EXPECT_EQ(again->name, name);
    EXPECT_EQ(again->spec.in, spec.in);
    EXPECT_EQ(again->spec.out, spec.out);
  }
}

TEST(ConvChoiceTuner, LeavesToTheRulesWhatTheSecondsDoNotSufficeFor) {
  ConvTuner tuner({.seconds = 0}, never_asked(), std::nullopt);
  const Layer layer(3);
  EXPECT_EQ(chosen(tuner, layer.forward(), layer.forwards()), "rules");
  EXPECT_EQ(tuner.counts().untimed, 1U);
  ConvTuner stopped({}, never_asked(), std::nullopt);
  stopped.stop();
  EXPECT_EQ(chosen(stopped, layer.forward(), layer.forwards()), "rules");
}

TEST(ConvChoiceTuner, LeavesToTheRulesWhatCannotBeTimed) {
  const ConvTuner::Measure nothing_runs =
      [](const Op&, const Signature&, std::span<const ConvCandidate> all, const KernelTable&) {
        return std::vector<double>(all.size(), std::numeric_limits<double>::infinity());
      };
  ConvTuner tuner({}, nothing_runs, std::nullopt);
  EXPECT_EQ(chosen(tuner, Layer(3).forward(), Layer(3).forwards()), "rules");
  EXPECT_EQ(tuner.counts().untimed, 1U);
}

TEST(ConvChoiceTuner, TakesFromTheCacheWhatAnEarlierRunTimed) {
  const TemporaryFolder folder;
  const Layer layer(3);
  FakeTimes times{.seconds = {{"winograd 2x2", 0.5}}};
  ConvTuner first({}, times.measure(), cache(folder / "plans"));
  EXPECT_EQ(chosen(first, layer.forward(), layer.forwards()), "winograd 2x2");
  ConvTuner second({}, never_asked(), cache(folder / "plans"));
  EXPECT_EQ(chosen(second, layer.forward(), layer.forwards()), "winograd 2x2");
  EXPECT_EQ(second.counts().cached, 1U);
  FakeTimes others;
  ConvTuner elsewhere({}, others.measure(), cache(folder / "plans", "another cpu"));
  (void)elsewhere.choose(layer.forward(), layer.forwards());
  EXPECT_EQ(others.measured, 1);
  ConvTuner direct({.winograd = false}, others.measure(), cache(folder / "plans"));
  EXPECT_THAT(chosen(direct, layer.forward(), layer.forwards()), Not(HasSubstr("winograd")));
  EXPECT_EQ(direct.counts().cached, 0U);
}

TEST(ConvChoiceTuner, TimesAnewWhereTheCacheNamesAKernelThatDoesNotRun) {
  const TemporaryFolder folder;
  const Layer layer(3);
  const ConvCandidates candidates(here(), true);
  const Signature settled = candidates.settled(layer.forward(), layer.forwards()).value();
  cache(folder / "plans")
      .store(layers::cpu::conv_key(layer.forward(), settled),
             {.choice = "pointwise", .seconds = 1});
  FakeTimes times{.seconds = {{"winograd 2x2", 0.5}}};
  ConvTuner tuner({}, times.measure(), cache(folder / "plans"));
  EXPECT_EQ(chosen(tuner, layer.forward(), layer.forwards()), "winograd 2x2");
  EXPECT_THAT(tuner.take_notes(),
              testing::ElementsAre(HasSubstr("plan cache: pointwise for conv")));
}

TEST(ConvChoiceTuner, GoesOnWithoutACacheThatCannotBeWritten) {
  FakeTimes times{.seconds = {{"winograd 2x2", 0.5}}};
  ConvTuner tuner({}, times.measure(), cache("/nowhere/plans"));
  EXPECT_EQ(chosen(tuner, Layer(3).forward(), Layer(3).forwards()), "winograd 2x2");
  EXPECT_THAT(tuner.take_notes(), testing::ElementsAre(HasSubstr("nothing more is kept")));
}

TEST(ConvChoiceTuner, AdoptsTheChoicesOfTheFirstRank) {
  const Layer layer(3), unmet(3, 1, 20);
  FakeTimes times{.seconds = {{"winograd 2x2", 0.5}}};
  ConvTuner first({}, times.measure(), std::nullopt);
  (void)chosen(first, layer.forward(), layer.forwards());
  ConvTuner second({}, never_asked(), std::nullopt);
  second.adopt(first.choices_text());
  EXPECT_EQ(chosen(second, layer.forward(), layer.forwards()), "winograd 2x2");
  EXPECT_EQ(chosen(second, unmet.forward(), unmet.forwards()), "rules")
      << "the first tuner never saw this convolution";
}

TEST(ConvChoiceTuner, SaysWhatItCannotAdopt) {
  const Layer layer(3);
  FakeTimes times{.seconds = {{"winograd 2x2", 0.5}}};
  ConvTuner first({}, times.measure(), std::nullopt);
  (void)chosen(first, layer.forward(), layer.forwards());
  ConvTuner without({.winograd = false}, never_asked(), std::nullopt);
  without.adopt(first.choices_text());
  EXPECT_THAT(error_of([&] { (void)without.choose(layer.forward(), layer.forwards()); }),
              HasSubstr("which rank 0 has chosen; use processors of one kind"));
  EXPECT_THAT(error_of([&] { without.adopt("no choices\n"); }),
              HasSubstr("rank 0's choices of kernels cannot be read: no choices"));
}

}  // namespace
}  // namespace cnn::tests
