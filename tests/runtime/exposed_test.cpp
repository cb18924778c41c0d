// Measures how long the compute lane waits for the communicate lane, with a clock that counts its
// readings.
#include <chrono>
#include <gtest/gtest.h>
#include <memory>
#include <utility>

#include "runtime/cpu/device.h"
#include "runtime/executor.h"
#include "tests/support/test_ops.h"
#include "tests/support/test_step.h"

namespace cnn {
namespace {

using tests::Scale;
using tests::test_kernels;
using tests::TestStep;

// Each stamp is one second later than the stamp before, whenever the stream reaches it.
class CountingStream final : public Stream {
 public:
  CountingStream(std::unique_ptr<Stream> inner, int& stamps)
      : inner_(std::move(inner)), stamps_(stamps) {}

  void copy(std::byte* to, const std::byte* from, std::size_t bytes) override {
    inner_->copy(to, from, bytes);
  }
  void host(std::function<void()> work) override { inner_->host(std::move(work)); }
  void record(Event& event) override { inner_->record(event); }
  void wait(Event& event) override { inner_->wait(event); }
  void stamp(std::chrono::steady_clock::time_point& at) override {
    at = std::chrono::steady_clock::time_point(std::chrono::seconds(++stamps_));
  }
  void synchronize() override { inner_->synchronize(); }

 private:
  std::unique_ptr<Stream> inner_;
  int& stamps_;
};

// A device whose recordings enqueue the same work again instead of replaying it.
class RepeatingDevice final : public Device {
 public:
  explicit RepeatingDevice(bool records) : records_(records) {}

  std::string name() const override { return "repeating"; }
  std::size_t memory_bytes() const override { return inner_.memory_bytes(); }
  std::unique_ptr<Stream> make_stream(Lane lane) override {
    return std::make_unique<CountingStream>(inner_.make_stream(lane), stamps_);
  }
  std::unique_ptr<Event> make_event() override { return inner_.make_event(); }
  Buffer allocate(std::size_t bytes) override { return inner_.allocate(bytes); }
  Buffer allocate_host(std::size_t bytes) override { return inner_.allocate_host(bytes); }
  std::unique_ptr<Recording> record(std::span<Stream* const> /*streams*/,
                                    const std::function<void()>& enqueue) override {
    class Repeat final : public Recording {
     public:
      explicit Repeat(std::function<void()> work) : work_(std::move(work)) {}
      void replay(Stream& /*stream*/) override { work_(); }

     private:
      std::function<void()> work_;
    };
    return records_ ? std::make_unique<Repeat>(enqueue) : nullptr;
  }

 private:
  CpuDevice inner_;
  bool records_;
  int stamps_ = 0;
};

// Returns a step with three exchanges. The next node of the compute lane waits for each of the
// first two; no node waits for the third.
TestStep exchanging_step(bool records) {
  auto graph = std::make_shared<Graph>();
  const tests::TestOpOptions exchange{.lane = Lane::communicate};
  Value x = graph->state("x", tests::floats(4), {}, false);
  for (int i = 0; i < 2; ++i) {
    x = emit(Scale(2), {emit(Scale(3, exchange), {emit(Scale(1), {x})})});
  }
  graph->output("x", x);
  graph->output("y", emit(Scale(2, exchange), {x}));
  return TestStep(make_program(make_plan(graph, test_kernels()), test_kernels()),
                  std::make_unique<RepeatingDevice>(records));
}

TEST(Exposed, IsTheTimeThatComputeStandsStillForCommunicate) {
  TestStep step = exchanging_step(false);
  EXPECT_EQ(step.executor().exposed_seconds(), std::nullopt) << "no step has run";
  for (int run = 0; run < 3; ++run) {
    step.run();
    EXPECT_EQ(step.executor().exposed_seconds(), 2.0);
  }
  step.executor().profile(step.inputs());
  EXPECT_EQ(step.executor().exposed_seconds(), 2.0);
}

TEST(Exposed, IsNotKnownOfAStepThatIsReplayed) {
  TestStep step = exchanging_step(true);
  step.run();
  EXPECT_EQ(step.executor().exposed_seconds(), 2.0);
  step.run();
  EXPECT_EQ(step.executor().exposed_seconds(), std::nullopt);
}

}  // namespace
}  // namespace cnn
