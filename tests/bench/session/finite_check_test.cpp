#include "bench/session/finite_check.h"

#include <gtest/gtest.h>
#include <limits>
#include <memory>
#include <optional>
#include <string>

#include "runtime/cpu/device.h"
#include "tests/support/test_ops.h"
#include "tests/support/test_step.h"

namespace cnn::bench {
namespace {

constexpr float largest_float = std::numeric_limits<float>::max();
constexpr float undefined_float = std::numeric_limits<float>::quiet_NaN();

// Returns a graph of y = 4 x + 1 and then w -= y / 4, which outputs the old w.
std::shared_ptr<const Graph> scaled_and_descended() {
  auto graph = std::make_shared<Graph>();
  const Value w = graph->parameter("w", tests::floats(3), {});
  const Value y = emit(tests::Scale(4), {graph->input("x", tests::floats(3))});
  graph->output("sum", emit(tests::Descend(), {w, y}));
  return graph;
}

// Runs a step on a device whose memory the host sees, or on one with memory of its own.
class CheckedStep {
 public:
  explicit CheckedStep(bool own_memory)
      : step_(make_plan(scaled_and_descended(), tests::test_kernels()), tests::test_kernels()) {
    backend_.device = std::make_unique<CpuDevice>();
    if (own_memory) {
      backend_.memory.host = 0;
    }
    check_.emplace(step_.executor().plan(), backend_);
    step_.executor().observe(*check_);
  }

  // Sets one element of the input.
  void set(std::size_t element, float value) { step_.inputs()[0].as<float>()[element] = value; }
  std::optional<NonFiniteTensor> run(bool wanted = true) {
    check_->begin(wanted);
    step_.run();
    return check_->first();
  }
  const FiniteCheck& check() const { return *check_; }

 private:
  tests::TestStep step_;
  Backend backend_;
  std::optional<FiniteCheck> check_;
};

class FiniteCheckOnDevices : public testing::TestWithParam<bool> {};

TEST_P(FiniteCheckOnDevices, FindsNothingInAFiniteStep) {
  CheckedStep step(GetParam());
  EXPECT_FALSE(step.run());
  EXPECT_TRUE(step.check().has_checked());
}

TEST_P(FiniteCheckOnDevices, NamesAnInputWithItsCount) {
  CheckedStep step(GetParam());
  step.set(0, undefined_float);
  step.set(2, -std::numeric_limits<float>::infinity());
  const std::optional<NonFiniteTensor> found = step.run();
  ASSERT_TRUE(found);
  EXPECT_EQ(found->name, "x");
  EXPECT_EQ(found->count, 2);
  EXPECT_EQ(found->elements, 3);
}

TEST_P(FiniteCheckOnDevices, NamesTheNodeThatOverflowsThoughItsInputsAreFinite) {
  CheckedStep step(GetParam());
  step.set(1, largest_float);
  const std::optional<NonFiniteTensor> found = step.run();
  ASSERT_TRUE(found);
  EXPECT_EQ(found->made_by, "scale#0");
  EXPECT_EQ(found->count, 1);
}

// The gradient is -largest / 4 in each step, so w grows by a sixteenth of the range.
TEST_P(FiniteCheckOnDevices, NamesAVariableThatOverflowsWhereItIsChanged) {
  CheckedStep step(GetParam());
  step.set(0, -largest_float / 4);
  std::optional<NonFiniteTensor> found;
  for (int i = 0; i < 5 && !found; ++i) {
    found = step.run();
  }
  ASSERT_TRUE(found);
  EXPECT_EQ(found->name, "w");
}

TEST_P(FiniteCheckOnDevices, TellsOfTheLatestStepAlone) {
  CheckedStep step(GetParam());
  step.set(0, undefined_float);
  EXPECT_TRUE(step.run());
  EXPECT_FALSE(step.run(false)) << "this step was not checked";
  EXPECT_FALSE(step.check().has_checked());
}

INSTANTIATE_TEST_SUITE_P(Memory, FiniteCheckOnDevices, testing::Bool(),
                         [](const auto& info) { return info.param ? "OfItsOwn" : "OfTheHost"; });

}  // namespace
}  // namespace cnn::bench
