#include "runtime/input_stage.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <functional>
#include <gtest/gtest.h>
#include <memory>
#include <string>
#include <utility>
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

constexpr std::int64_t count = 100'000;  // floats in a batch
constexpr double slow = 10e6;            // bytes per second, so that a batch takes 40 ms

// Returns a step that computes y = 2 x + 1 in about that time.
TestStep doubling(milliseconds time) {
  auto graph = std::make_shared<Graph>();
  graph->output("y", emit(tests::Scale(2), {graph->input("x", floats(count))}));
  // The first kernel of a table takes seven tenths of the longest delay.
  const KernelTable table = tests::test_kernels({.longest_delay = time * 10 / 7});
  return TestStep(make_plan(std::move(graph), table), table);
}

// A stage for one input with its own memory, and the batch on the host that it copies.
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

// A device whose copies begin when the test lets them. It counts the copies that have ended.
class GatedDevice final : public Device {
 public:
  std::string name() const override { return inner_.name(); }
  std::size_t memory_bytes() const override { return inner_.memory_bytes(); }
  std::unique_ptr<Event> make_event() override { return inner_.make_event(); }
  Buffer allocate(std::size_t bytes) override { return inner_.allocate(bytes); }
  Buffer allocate_host(std::size_t bytes) override { return inner_.allocate_host(bytes); }
  std::unique_ptr<Stream> make_stream(Lane lane) override {
    return std::make_unique<GatedStream>(*this, inner_.make_stream(lane));
  }

  void let_copies_begin(int number) {
    allowed_ = number;
    allowed_.notify_all();
  }
  int ended() const { return ended_; }
  void wait_until_ended(int number) const {
    for (int now = ended_; now < number; now = ended_) {
      ended_.wait(now);
    }
  }

 private:
  class GatedStream final : public Stream {
   public:
    GatedStream(GatedDevice& device, std::unique_ptr<Stream> inner)
        : device_(device), inner_(std::move(inner)) {}
    void copy(std::byte* to, const std::byte* from, std::size_t bytes) override {
      inner_->host([this] { device_.wait_until_allowed(); });
      inner_->copy(to, from, bytes);
      inner_->host([this] { device_.end_copy(); });
    }
    void host(std::function<void()> work) override { inner_->host(std::move(work)); }
    void record(Event& event) override { inner_->record(event); }
    void wait(Event& event) override { inner_->wait(event); }
    void synchronize() override { inner_->synchronize(); }

   private:
    GatedDevice& device_;
    std::unique_ptr<Stream> inner_;
  };

  void wait_until_allowed() const {
    for (int now = allowed_; now <= ended_; now = allowed_) {
      allowed_.wait(now);
    }
  }
  void end_copy() {
    ++ended_;
    ended_.notify_all();
  }

  CpuDevice inner_;
  std::atomic<int> allowed_ = 0, ended_ = 0;  // numbers of copies
};

// The test checks the order of events instead of the clock, because other jobs may load the
// machine.
TEST(InputStage, CopiesABatchWhileTheStepBeforeItRuns) {
  TestStep step = doubling(milliseconds(0));
  GatedDevice device;
  const std::vector<TensorDesc> inputs{floats(count)};
  const Buffer memory = device.allocate(InputStage::bytes_for(inputs));
  std::vector<float> host(count, 3);
  const std::vector<TensorView> view{
      {.desc = inputs.front(), .data = reinterpret_cast<std::byte*>(host.data())}};
  InputStage stages(device, inputs, {memory.data(), memory.bytes()});
  device.let_copies_begin(1);
  stages.stage(view);
  const std::span<const TensorView> batch = stages.take();
  std::fill(host.begin(), host.end(), 5.0F);
  stages.stage(view);
  step.executor().run(batch);
  EXPECT_EQ(device.ended(), 1) << "the step did not wait for the batch after its own";
  expect_all(step.executor().results().front(), 7);
  device.let_copies_begin(2);
  device.wait_until_ended(2);  // the copy goes on without any further call
  step.executor().run(batch);
  expect_all(step.executor().results().front(), 7);
  step.executor().run(stages.take());
  expect_all(step.executor().results().front(), 11);
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
  EXPECT_GE(steady_clock::now() - start, milliseconds(20))
      << "the caller may free the host's memory now";
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
