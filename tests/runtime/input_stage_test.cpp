#include "runtime/input_stage.h"

#include <algorithm>
#include <chrono>
#include <gtest/gtest.h>
#include <memory>
#include <vector>

#include "runtime/cpu/device.h"
#include "runtime/error.h"
#include "tests/support/test_ops.h"
#include "tests/support/test_step.h"

namespace cnn {
namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;
using tests::floats;
using tests::TestStep;

constexpr std::int64_t count = 100'000;  // floats of a batch
constexpr double slow = 10e6;            // bytes per second: a batch takes 40 ms

// y = 2 x + 1, in about that time.
TestStep doubling(milliseconds time) {
  auto graph = std::make_shared<Graph>();
  graph->output("y", emit(tests::Scale(2), {graph->input("x", floats(count))}));
  // The first kernel of a table takes seven tenths of the longest delay.
  const KernelTable table = tests::test_kernels({.longest_delay = time * 10 / 7});
  return TestStep(make_plan(std::move(graph), table), table);
}

// A stage for one input, in memory of its own, and the batch on the host that is copied.
struct Staging {
  explicit Staging(double bytes_per_second) : device({.link = {.in = bytes_per_second}}) {}

  void stage(int batch) {
    std::fill_n(reinterpret_cast<float*>(host.data()), count, static_cast<float>(batch));
    stage_as_it_is();
  }
  void stage_as_it_is() {
    const std::vector<TensorView> view{{.desc = inputs.front(), .data = host.data()}};
    stages.stage(view);
  }

  CpuDevice device;
  std::vector<TensorDesc> inputs{floats(count)};
  Buffer memory = device.allocate(InputStage::bytes_for(inputs));
  Buffer host = device.allocate_host(count * sizeof(float));
  InputStage stages{device, inputs, {memory.data(), memory.bytes()}};
};

void expect_all(const TensorView& view, float value) {
  const auto values = view.as<float>();
  EXPECT_EQ(std::count(values.begin(), values.end(), value), count);
}

TEST(InputStage, GivesEachStepItsBatchThoughHostMemoryIsUsedAgain) {
  TestStep step = doubling(milliseconds(0));
  Staging staging(200e6);
  staging.stage(0);
  for (int i = 0; i < 20; ++i) {
    const std::span<const TensorView> batch = staging.stages.take();
    staging.stage(i + 1);
    step.executor().run(batch);
    expect_all(step.executor().results().front(), static_cast<float>(2 * i + 1));
  }
}

// Others may use the machine: one undisturbed attempt of several shows that copies overlap steps.
TEST(InputStage, CopiesABatchWhileTheStepBeforeItRuns) {
  constexpr int steps = 6, attempts = 8;
  constexpr milliseconds one_after_the_other(steps * 80), limit(steps * 70);
  auto best = std::chrono::duration_cast<milliseconds>(std::chrono::hours(1));
  for (int attempt = 0; attempt < attempts && best >= limit; ++attempt) {
    TestStep step = doubling(milliseconds(40));
    Staging staging(slow);
    const auto start = steady_clock::now();
    staging.stage(0);
    for (int i = 0; i < steps; ++i) {
      const std::span<const TensorView> batch = staging.stages.take();
      staging.stage(i + 1);
      step.executor().run(batch);
    }
    best = std::min(best, std::chrono::duration_cast<milliseconds>(steady_clock::now() - start));
  }
  EXPECT_LT(best, limit) << "one after the other it would be " << one_after_the_other.count();
}

TEST(InputStage, TakesTwoBuffersOfEachInputInTurn) {
  EXPECT_EQ(InputStage::bytes_for(std::vector<TensorDesc>{floats(3), floats(17)}), 2 * (64U + 128));
  Staging staging(0);
  std::vector<const std::byte*> addresses;
  for (int i = 0; i < 4; ++i) {
    staging.stage(i);
    addresses.push_back(staging.stages.take().front().data);
  }
  EXPECT_NE(addresses[0], addresses[1]);
  EXPECT_EQ(addresses[2], addresses[0]);
  EXPECT_EQ(addresses[3], addresses[1]);
}

TEST(InputStage, WaitsForCopiesThatNobodyTakes) {
  Staging staging(slow);
  const auto start = steady_clock::now();
  staging.stage(1);
  staging.stages.forget();
  EXPECT_GE(steady_clock::now() - start, milliseconds(20)) << "the host's memory may go now";
  EXPECT_FALSE(staging.stages.is_filled());
}

TEST(InputStage, RefusesWhatNoStepCouldUse) {
  Staging staging(0);
  EXPECT_THROW(staging.stages.take(), Error);
  staging.stage(1);
  EXPECT_THROW(staging.stage_as_it_is(), Error);
  staging.stages.forget();
  EXPECT_THROW(staging.stages.stage({}), Error);
  staging.inputs.front() = floats(count - 1);
  EXPECT_THROW(staging.stage_as_it_is(), Error);
}

}  // namespace
}  // namespace cnn
