#include <cstring>
#include <exception>
#include <gtest/gtest.h>
#include <memory>
#include <vector>

#include "runtime/cpu/device.h"
#include "runtime/error.h"
#include "runtime/executor.h"
#include "runtime/input_stage.h"
#include "tests/support/error_of.h"
#include "tests/support/test_graphs.h"
#include "tests/support/test_ops.h"
#include "tests/support/test_step.h"

namespace cnn {
namespace {

using tests::random_graph;
using tests::test_kernels;
using tests::TestStep;
using tests::with_random_edits;

using Tape = std::vector<std::function<void()>>;

// Counts the calls that a recording device gets.
struct Counts {
  int recorded = 0, replayed = 0, given = 0;  // given: entries that streams got directly
  int replays_on_compute = 0;
};

// A CPU stream that appends work to a tape instead of running it while a tape is set.
class TapedStream final : public Stream {
 public:
  TapedStream(std::unique_ptr<Stream> inner, Tape*& tape, Counts& counts, Lane lane)
      : inner_(std::move(inner)), tape_(tape), counts_(counts), lane_(lane) {}

  void copy(std::byte* to, const std::byte* from, std::size_t bytes) override {
    give([this, to, from, bytes] { inner_->copy(to, from, bytes); });
  }
  void host(std::function<void()> work) override {
    give([this, work = std::move(work)] { inner_->host(work); });
  }
  void record(Event& event) override {
    give([this, &event] { inner_->record(event); });
  }
  void wait(Event& event) override {
    give([this, &event] { inner_->wait(event); });
  }
  void synchronize() override {
    check(tape_ == nullptr, "a stream was waited for while it was recorded");
    inner_->synchronize();
  }
  Lane lane() const { return lane_; }

 private:
  void give(std::function<void()> entry) {
    if (tape_ != nullptr) {
      tape_->push_back(std::move(entry));
    } else {
      ++counts_.given;
      entry();
    }
  }

  std::unique_ptr<Stream> inner_;
  Tape*& tape_;
  Counts& counts_;
  Lane lane_;
};

class TapedRecording final : public Recording {
 public:
  TapedRecording(Tape tape, Counts& counts) : tape_(std::move(tape)), counts_(counts) {}
  void replay(Stream& stream) override {
    ++counts_.replayed;
    counts_.replays_on_compute += int{dynamic_cast<TapedStream&>(stream).lane() == Lane::compute};
    for (const auto& entry : tape_) {
      entry();
    }
  }

 private:
  Tape tape_;
  Counts& counts_;
};

// A CPU device with recordings.
class TapingDevice final : public Device {
 public:
  TapingDevice(CpuOptions options, Counts& counts) : inner_(std::move(options)), counts_(counts) {}

  std::string name() const override { return "taping"; }
  std::size_t memory_bytes() const override { return inner_.memory_bytes(); }
  std::unique_ptr<Stream> make_stream(Lane lane) override {
    return std::make_unique<TapedStream>(inner_.make_stream(lane), tape_, counts_, lane);
  }
  std::unique_ptr<Event> make_event() override { return inner_.make_event(); }
  Buffer allocate(std::size_t bytes) override { return inner_.allocate(bytes); }
  Buffer allocate_host(std::size_t bytes) override { return inner_.allocate_host(bytes); }
  std::unique_ptr<Recording> record(std::span<Stream* const> /*streams*/,
                                    const std::function<void()>& enqueue) override {
    ++counts_.recorded;
    Tape tape;
    tape_ = &tape;
    try {
      enqueue();
    } catch (...) {
      tape_ = nullptr;
      throw;
    }
    tape_ = nullptr;
    return std::make_unique<TapedRecording>(std::move(tape), counts_);
  }

 private:
  CpuDevice inner_;
  Counts& counts_;
  Tape* tape_ = nullptr;
};

TestStep taped(StepPlan plan, const KernelTable& table, Counts& counts,
               ExecutorOptions options = tests::lanes_apart) {
  return TestStep(
      make_program(std::move(plan), table),
      std::make_unique<TapingDevice>(CpuOptions{.link = {.out = 1e7, .in = 1e7}}, counts), options);
}

StepPlan busy_plan(unsigned seed) {
  int kept = 0;
  return with_random_edits(make_plan(random_graph(seed), test_kernels({.workspace = 100})), seed,
                           30, kept);
}

void expect_same_values(const std::vector<float>& a, const std::vector<float>& b) {
  ASSERT_EQ(a.size(), b.size());
  EXPECT_EQ(std::memcmp(a.data(), b.data(), a.size() * sizeof(float)), 0);
}

TEST(Recording, IsMadeAfterTheFirstRunAndReplayedFromThenOn) {
  Counts counts;
  TestStep step = taped(busy_plan(1), test_kernels(), counts);
  step.run();
  EXPECT_EQ(counts.recorded, 0);
  const int of_one_run = counts.given;
  EXPECT_GT(of_one_run, 0);
  for (int i = 0; i < 4; ++i) {
    step.run();
  }
  EXPECT_EQ(counts.recorded, 1);
  EXPECT_EQ(counts.replayed, 4);
  EXPECT_EQ(counts.replays_on_compute, 4);
  EXPECT_EQ(counts.given, of_one_run) << "later runs enqueued nothing else";
}

TEST(Recording, GivesTheBitsOfRunsThatWereEnqueued) {
  for (unsigned seed = 2; seed < 6; ++seed) {
    const KernelTable table =
        test_kernels({.workspace = 100, .longest_delay = std::chrono::microseconds(100)});
    Counts counts;
    Counts none;
    TestStep replayed = taped(busy_plan(seed), table, counts);
    TestStep enqueued = taped(busy_plan(seed), table, none, {.record = false});
    for (int i = 0; i < 4; ++i) {
      replayed.run();
      enqueued.run();
    }
    EXPECT_EQ(counts.replayed, 3);
    EXPECT_EQ(none.recorded, 0);
    expect_same_values(replayed.outcome(), enqueued.outcome());
  }
}

TEST(Recording, ReadsTheInputsOfEachRun) {
  Counts counts;
  TestStep step = taped(make_plan(tests::random_graph(7), test_kernels()), test_kernels(), counts);
  Counts none;
  TestStep other = taped(make_plan(tests::random_graph(7), test_kernels()), test_kernels(), none,
                         {.record = false});
  for (int i = 0; i < 3; ++i) {
    for (TestStep* each : {&step, &other}) {
      tests::fill(each->inputs().front().as<float>(), 50 + i);
      each->run();
    }
    expect_same_values(step.outcome(), other.outcome());
  }
}

TEST(Recording, IsMadeOnceForEachOfTheTwoPlacesOfStagedInputs) {
  Counts counts;
  TestStep step = taped(make_plan(random_graph(8), test_kernels()), test_kernels(), counts);
  Counts none;
  TestStep other =
      taped(make_plan(random_graph(8), test_kernels()), test_kernels(), none, {.record = false});
  CpuDevice device({.link = {.in = 1e7}});
  std::vector<TensorDesc> inputs;
  for (const TensorView& input : step.inputs()) {
    inputs.push_back(input.desc);
  }
  const Buffer memory = device.allocate(InputStage::bytes_for(inputs));
  InputStage stage(device, inputs, {memory.data(), memory.bytes()});
  for (int i = 0; i < 7; ++i) {
    for (TestStep* each : {&step, &other}) {
      tests::fill(each->inputs().front().as<float>(), 50 + i);
    }
    stage.stage(step.inputs());
    step.executor().run(stage.take());
    other.run();
    expect_same_values(step.outcome(), other.outcome());
  }
  EXPECT_EQ(counts.recorded, 2);
  EXPECT_EQ(counts.replayed, 6);
}

TEST(Recording, IsKeptForEachOfAFewSetsOfInputAddresses) {
  Counts counts;
  TestStep step = taped(make_plan(random_graph(8), test_kernels()), test_kernels(), counts);
  const std::vector<TensorView> original(step.inputs().begin(), step.inputs().end());
  std::vector<std::vector<std::byte>> copies;
  for (int i = 0; i < 6; ++i) {
    copies.emplace_back(original.front().desc.bytes());
    std::memcpy(copies.back().data(), original.front().data, copies.back().size());
  }
  const auto run_with = [&](std::size_t i) {
    std::vector<TensorView> inputs = original;
    inputs.front().data = copies[i].data();
    step.executor().run(inputs);
  };
  run_with(0);  // warm-up run
  for (int round = 0; round < 2; ++round) {
    for (std::size_t i = 0; i < 4; ++i) {
      run_with(i);
    }
  }
  EXPECT_EQ(counts.recorded, 4);
  EXPECT_EQ(counts.replayed, 8);
  run_with(4);
  run_with(5);
  EXPECT_EQ(counts.recorded, 4) << "runs with further addresses are enqueued";
  EXPECT_EQ(counts.replayed, 8);
  run_with(3);
  EXPECT_EQ(counts.replayed, 9);
}

TEST(Recording, EndsWhereOtherRanksEnqueueTheirSteps) {
  Counts counts;
  TestStep step = taped(busy_plan(9), test_kernels(), counts);
  step.run();
  step.run();
  step.executor().stop_recording();
  step.run();
  EXPECT_EQ(counts.recorded, 1);
  EXPECT_EQ(counts.replayed, 1);
}

TEST(Recording, IsNeverUsedToProfile) {
  Counts counts;
  TestStep step = taped(busy_plan(9), test_kernels(), counts);
  step.run();
  step.run();
  step.executor().profile(step.inputs());
  EXPECT_EQ(counts.replayed, 1);
  EXPECT_EQ(counts.recorded, 1);
}

TEST(Recording, IsAskedForOnceOfADeviceThatHasNone) {
  // A device that declines to record and counts how often it is asked.
  class Declining final : public Device {
   public:
    explicit Declining(int& request) : asked_(request) {}
    std::string name() const override { return "declining"; }
    std::size_t memory_bytes() const override { return inner_.memory_bytes(); }
    std::unique_ptr<Stream> make_stream(Lane lane) override { return inner_.make_stream(lane); }
    std::unique_ptr<Event> make_event() override { return inner_.make_event(); }
    Buffer allocate(std::size_t bytes) override { return inner_.allocate(bytes); }
    Buffer allocate_host(std::size_t bytes) override { return inner_.allocate_host(bytes); }
    std::unique_ptr<Recording> record(std::span<Stream* const> streams,
                                      const std::function<void()>& enqueue) override {
      ++asked_;
      return Device::record(streams, enqueue);
    }

   private:
    CpuDevice inner_;
    int& asked_;
  };
  int request = 0;
  TestStep step(make_program(make_plan(random_graph(10), test_kernels()), test_kernels()),
                std::make_unique<Declining>(request));
  for (int i = 0; i < 4; ++i) {
    step.run();
  }
  EXPECT_EQ(request, 1);
}

// A device whose recordings all fail, with an error that appears after the last entry.
class FailingToRecord final : public Device {
 public:
  FailingToRecord(Counts& counts, std::function<void()> fail)
      : inner_(CpuOptions{}, counts), fail_(std::move(fail)) {}
  std::string name() const override { return "failing"; }
  std::size_t memory_bytes() const override { return inner_.memory_bytes(); }
  std::unique_ptr<Stream> make_stream(Lane lane) override { return inner_.make_stream(lane); }
  std::unique_ptr<Event> make_event() override { return inner_.make_event(); }
  Buffer allocate(std::size_t bytes) override { return inner_.allocate(bytes); }
  Buffer allocate_host(std::size_t bytes) override { return inner_.allocate_host(bytes); }
  std::unique_ptr<Recording> record(std::span<Stream* const> streams,
                                    const std::function<void()>& enqueue) override {
    return inner_.record(streams, [&] {
      enqueue();
      fail_();
    });
  }

 private:
  TapingDevice inner_;
  std::function<void()> fail_;
};

TEST(Recording, IsReplacedByEnqueuingWhereTheDeviceFailsToMakeOne) {
  Counts counts, none;
  TestStep step(make_program(busy_plan(12), test_kernels()),
                std::make_unique<FailingToRecord>(counts, [] { throw Error("no such capture"); }),
                tests::lanes_apart);
  TestStep other = taped(busy_plan(12), test_kernels(), none, {.record = false});
  EXPECT_EQ(step.executor().why_not_recorded(), "");
  for (int i = 0; i < 4; ++i) {
    step.run();
    other.run();
    expect_same_values(step.outcome(), other.outcome());
  }
  EXPECT_EQ(counts.recorded, 1) << "the device is not asked again";
  EXPECT_EQ(counts.replayed, 0);
  EXPECT_EQ(step.executor().why_not_recorded(), "no such capture");
}

TEST(Recording, LetsErrorsThroughThatTellOfMoreThanTheStep) {
  Counts counts;
  TestStep step(make_program(busy_plan(13), test_kernels()),
                std::make_unique<FailingToRecord>(counts, [] { throw DoesNotFit("too large"); }),
                tests::lanes_apart);
  step.run();
  EXPECT_THROW(step.run(), DoesNotFit);
}

// Returns a step of one node, which cannot be recorded although its exchange must be.
TestStep unrecordable_step(Lane lane, Counts& counts) {
  auto graph = std::make_shared<Graph>();
  const Value x = graph->state("x", tests::floats(4), {}, false);
  graph->output("y", emit(tests::Scale(2, {.lane = lane}), {x}));
  return TestStep(make_program(make_plan(graph, test_kernels()), test_kernels()),
                  std::make_unique<FailingToRecord>(counts, [] { throw Error("no such capture"); }),
                  {.must_record_exchange = true});
}

TEST(Recording, IsRequiredOfAStepWithAnExchangeThatOtherRanksReplay) {
  Counts counts;
  TestStep exchange = unrecordable_step(Lane::communicate, counts);
  exchange.run();
  EXPECT_EQ(tests::error_of([&] { exchange.run(); }),
            "no such capture; other ranks may replay this step from a CUDA graph, so this one must "
            "too: try --nouse_cuda_graph");
  TestStep other = unrecordable_step(Lane::compute, counts);
  other.run();
  other.run();
  EXPECT_EQ(other.executor().why_not_recorded(), "no such capture");
}

// A kernel that throws an exception while one is set.
class Failing final : public Kernel {
 public:
  explicit Failing(const std::exception_ptr& error) : error_(error) {}
  void run(Stream& /*stream*/, const Operands& /*operands*/) override {
    if (error_) {
      std::rethrow_exception(error_);
    }
  }

 private:
  const std::exception_ptr& error_;
};

// Returns a step whose kernel 20 throws the exception.
TestStep failing_step(const std::exception_ptr& error, Counts& counts) {
  Program program = make_program(make_plan(random_graph(11), test_kernels()), test_kernels());
  program.kernels[20] = std::make_unique<Failing>(error);
  return TestStep(std::move(program), std::make_unique<TapingDevice>(CpuOptions{}, counts));
}

TEST(Recording, LetsErrorsOfKernelsThroughThatTellOfMoreThanTheStep) {
  std::exception_ptr error;
  Counts counts;
  TestStep step = failing_step(error, counts);
  step.run();
  error = std::make_exception_ptr(DoesNotFit("too large"));
  EXPECT_THROW(step.run(), DoesNotFit);
  EXPECT_EQ(counts.recorded, 1);
  EXPECT_THROW(step.executor().profile(step.inputs()), DoesNotFit) << "also of enqueued steps";
}

TEST(Recording, IsNotMadeOfAStepThatFailed) {
  const std::exception_ptr refused = std::make_exception_ptr(Error("refused"));
  std::exception_ptr error = refused;
  Counts counts;
  TestStep step = failing_step(error, counts);
  EXPECT_THROW(step.run(), Error);
  EXPECT_THROW(step.run(), Error);
  EXPECT_EQ(counts.recorded, 0) << "no run has succeeded yet";
  error = nullptr;
  step.run();
  error = refused;
  EXPECT_THROW(step.run(), Error) << "this run is recorded";
  error = nullptr;
  step.run();
  EXPECT_EQ(counts.recorded, 2);
  EXPECT_EQ(counts.replayed, 1);
}

}  // namespace
}  // namespace cnn
