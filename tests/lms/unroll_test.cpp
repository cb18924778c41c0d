#include "lms/unroll.h"

#include <gtest/gtest.h>
#include <vector>

#include "lms/outline.h"
#include "tests/lms/step_case.h"

namespace cnn::lms {
namespace {

using tests::StepCase;

Fates fates_of(const Outline& outline, const std::vector<Value>& roots, Fate fate) {
  Fates fates(outline.roots.size(), Fate::keep);
  for (std::size_t r = 0; r < fates.size(); ++r) {
    for (const Value& root : roots) {
      fates[r] = outline.roots[r].tensor == root.id ? fate : fates[r];
    }
  }
  return fates;
}

// Its parts are a and b; b is made of s, and s of a.
TEST(Unroll, MakesAgainOnceWhatStandsBetweenThePartsOfARoot) {
  StepCase c;
  const Value a = c.make("conv", {c.images()});
  const Value s = c.make("relu", {a});
  const Value b = c.make("conv", {s});
  const Value whole = c.make_image("concat", {a, b}, 2);
  const Value first = c.make("loss_backward", {c.make("conv", {whole})});
  c.make("relu_backward", {first, s});
  c.make("concat_backward", {first, whole});
  c.graph->place_inside(a.id, whole.id, 0);
  c.graph->place_inside(b.id, whole.id, 1);
  c.settle(first);
  const Outline outlined = outline(c.request());
  Unroller unroller(outlined);
  std::vector<std::uint32_t> again;
  for (const UnrolledStep& step :
       unroller.unroll(fates_of(outlined, {s, whole}, Fate::drop)).steps) {
    if (step.again) {
      again.push_back(step.id);
    }
  }
  EXPECT_EQ(again, (std::vector<std::uint32_t>{0, 1, 2, 3}));
}

TEST(Unroll, LetsNoOneHaveTheBytesOfWhatIsCopiedOut) {
  StepCase c;
  const Value a = c.make("conv", {c.images()});
  const Value first = c.make("loss_backward", {c.make("relu", {a}, true)});
  c.make("relu_backward", {first, a});
  c.settle(first);
  const Outline outlined = outline(c.request());
  Unroller unroller(outlined);
  const auto taken = [&](Fate fate) {
    return unroller.unroll(fates_of(outlined, {a}, fate)).taken_over.size();
  };
  EXPECT_EQ(taken(Fate::keep), 0U);
  EXPECT_EQ(taken(Fate::drop), 1U);
  EXPECT_EQ(taken(Fate::swap), 0U) << "it leaves behind the step that would take them";
}

}  // namespace
}  // namespace cnn::lms
