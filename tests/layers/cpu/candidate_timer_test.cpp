#include "layers/cpu/candidate_timer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <limits>

#include "runtime/cpu/device.h"
#include "tests/layers/cpu/small_conv.h"

namespace cnn::tests {
namespace {

using layers::cpu::ConvCandidates;

TEST(ConvChoiceTimer, TimesEachKernelOnTheDevice) {
  CpuDevice device;
  const ConvCandidates candidates(here(), true);
  const Layer layer(3);
  const Signature settled = candidates.settled(layer.forward(), layer.forwards()).value();
  const auto all = candidates.offers(layer.forward(), settled);
  const auto seconds =
      layers::cpu::seconds_of_candidates(device, layer.forward(), settled, all, candidates.rules());
  ASSERT_EQ(seconds.size(), all.size());
  for (const double each : seconds) {
    EXPECT_GT(each, 0);
    EXPECT_LT(each, 10);
  }
}

TEST(ConvChoiceTimer, TimesNothingThatDoesNotFit) {
  CpuDevice device({.memory_limit = 4096});
  const ConvCandidates candidates(here(), true);
  const Layer layer(3);
  const Signature settled = candidates.settled(layer.forward(), layer.forwards()).value();
  const auto all = candidates.offers(layer.forward(), settled);
  const auto seconds =
      layers::cpu::seconds_of_candidates(device, layer.forward(), settled, all, candidates.rules());
  EXPECT_THAT(seconds, testing::Each(std::numeric_limits<double>::infinity()));
}

TEST(ConvChoiceTimer, TimesNothingWhereNothingIsOffered) {
  CpuDevice device;
  const ConvCandidates candidates(here(), true);
  const Layer layer(3);
  EXPECT_TRUE(layers::cpu::seconds_of_candidates(device, layer.forward(), layer.forwards(), {},
                                                 candidates.rules())
                  .empty());
}

// A kernel that cannot be made takes for ever, and does not keep others from being timed.
TEST(ConvChoiceTimer, TakesForEverWhereAKernelCannotBeMade) {
  CpuDevice device;
  const ConvCandidates candidates(here(), true);
  const Layer layer(3);
  const Signature settled = candidates.settled(layer.forward(), layer.forwards()).value();
  auto all = candidates.offers(layer.forward(), settled);
  const KernelTable empty;
  all.front().table = &empty;
  const auto seconds =
      layers::cpu::seconds_of_candidates(device, layer.forward(), settled, all, candidates.rules());
  EXPECT_EQ(seconds.front(), std::numeric_limits<double>::infinity());
  for (std::size_t i = 1; i < seconds.size(); ++i) {
    EXPECT_LT(seconds[i], 10);
  }
}

}  // namespace
}  // namespace cnn::tests
