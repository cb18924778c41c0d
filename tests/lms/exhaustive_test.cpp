#include "tests/lms/exhaustive.h"

#include <gtest/gtest.h>
#include <random>
#include <vector>

#include "lms/bound.h"
#include "tests/lms/quick_plan.h"
#include "tests/lms/random_step.h"

namespace cnn::lms {
namespace {

using tests::Exhaustive;
using tests::StepCase;

// Returns a chain of three to six layers of random sizes, in which each gradient reads its layer's
// input.
StepCase random_chain(unsigned seed) {
  std::mt19937 random(seed);
  StepCase c;
  std::vector<Value> x{c.images()};
  const std::size_t layers = 3 + random() % 4;
  for (std::size_t n = 0; n < layers; ++n) {
    x.push_back(c.make_image("conv", {x.back()}, 1 + static_cast<std::int64_t>(random() % 4)));
  }
  const Value first = c.make("loss_backward", {x.back()});
  Value gradient = first;
  for (std::size_t n = layers; n-- > 1;) {
    gradient = c.make_image("conv_backward", {gradient, x[n]}, x[n].desc().shape[1]);
  }
  c.settle(first);
  for (double& seconds : c.costs.seconds) {
    seconds = 1 + static_cast<double>(random() % 4);
  }
  return c;
}

StepCase small_step(unsigned seed, bool chain) {
  std::mt19937 random(seed + 77);
  StepCase c = chain ? random_chain(seed) : tests::random_step(seed);
  constexpr double rates[] = {20, 64, 200, 1000};
  c.costs.out_bytes_per_second = rates[random() % 4];
  c.costs.in_bytes_per_second = rates[random() % 4];
  c.options.recompute = random() % 2 == 0 ? Recomputation::off : Recomputation::automatic;
  const std::size_t need = c.peak(c.schedule).device_bytes;
  c.budget.device = need;
  const std::size_t least = std::min(need, tests::min_memory_bytes(c.request()));
  c.budget.device = (least + (need - least) * (random() % 5) / 5) / alignment * alignment;
  return c;
}

struct Tally {
  int steps = 0, near = 0;  // near counts the plans within 3 per cent of the optimum
};

Tally compare(unsigned seeds, bool chain) {
  Tally tally;
  for (unsigned seed = 0; seed < seeds; ++seed) {
    SCOPED_TRACE(seed);
    const StepCase c = small_step(seed, chain);
    Exhaustive all(c.request());
    if (all.movable() == 0 || all.movable() > 5) {
      continue;
    }
    const double best = all.seconds();
    EXPECT_LE(lower_bound(c.request()).seconds, best * (1 + 1e-9));
    ++tally.steps;
    tally.near += tests::quick_plan(c.request(), 20'000).evaluation.seconds <= 1.03 * best ? 1 : 0;
  }
  return tally;
}

TEST(Exhaustive, ChainsAreNoFasterThanTheirBoundAndPlansAsFast) {
  const Tally tally = compare(150, true);
  EXPECT_GT(tally.steps, 100);
  EXPECT_GE(tally.near, tally.steps * 99 / 100);
}

TEST(LongExhaustive, StepsAreNoFasterThanTheirBoundAndPlansAsFast) {
  const Tally tally = compare(150, false);
  EXPECT_GT(tally.steps, 20);
  EXPECT_GE(tally.near, tally.steps * 99 / 100);
}

}  // namespace
}  // namespace cnn::lms
