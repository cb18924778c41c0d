#include "runtime/executor.h"

#include <chrono>
#include <cstring>
#include <filesystem>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <iterator>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "runtime/cpu/device.h"
#include "runtime/error.h"
#include "runtime/liveness.h"
#include "tests/support/error_of.h"
#include "tests/support/swapping_step.h"
#include "tests/support/test_graphs.h"
#include "tests/support/test_ops.h"
#include "tests/support/test_step.h"

namespace cnn {
namespace {

using std::chrono::microseconds;
using ::testing::ElementsAre;
using tests::Descend;
using tests::floats;
using tests::random_graph;
using tests::Scale;
using tests::swapping_plan;
using tests::test_kernels;
using tests::TestStep;
using tests::with_random_edits;

// Returns the results of three steps.
std::vector<float> outcome_of(StepPlan plan, const KernelTable& table, CpuOptions options = {}) {
  TestStep step(std::move(plan), table, std::move(options));
  for (int i = 0; i < 3; ++i) {
    step.run();
  }
  EXPECT_TRUE(step.canaries_are_intact());
  return step.outcome();
}

void expect_identical(const std::vector<float>& a, const std::vector<float>& b) {
  EXPECT_TRUE(tests::identical(a, b));
}

// Returns a graph of y = 2 x + 1 and w -= y / 4.
std::shared_ptr<Graph> small_graph() {
  auto graph = std::make_shared<Graph>();
  const Value x = graph->input("x", floats(2));
  const Value w = graph->parameter("w", floats(2), {});
  const Value y = emit(Scale(2), {x});
  graph->output("y", y);
  graph->output("w sum", emit(Descend(), {w, y}));
  return graph;
}

TEST(Executor, ComputesAStepAndKeepsVariables) {
  TestStep step(make_plan(small_graph(), test_kernels()), test_kernels());
  step.inputs()[0].as<float>()[0] = 1;
  step.inputs()[0].as<float>()[1] = -3;
  const std::vector<float> before = step.outcome();
  step.run();
  step.run();
  const std::vector<float> after = step.outcome();  // the values of y, sum and w
  EXPECT_THAT(std::vector<float>(after.begin(), after.begin() + 2), ElementsAre(3, -5));
  EXPECT_EQ(after[3], before[3] - 2 * 0.75F);
  EXPECT_EQ(after[4], before[4] + 2 * 1.25F);
  EXPECT_EQ(after[2], before[3] - 0.75F + before[4] + 1.25F) << "the sum before the second update";
}

TEST(Executor, ReadsTheInputsOfEachRun) {
  TestStep step(make_plan(small_graph(), test_kernels()), test_kernels());
  for (const float x : {1.0F, 7.0F}) {
    step.inputs()[0].as<float>()[0] = x;
    step.run();
    EXPECT_EQ(step.executor().results()[0].as<float>()[0], 2 * x + 1);
  }
}

TEST(Executor, GivesAnOutputUnderEachOfItsNames) {
  auto graph = std::make_shared<Graph>();
  const Value y = emit(Scale(2), {graph->input("x", floats(1))});
  graph->output("first", y);
  graph->output("x", {graph.get(), graph->inputs()[0]});
  graph->output("second", y);
  TestStep step(make_plan(graph, test_kernels()), test_kernels());
  step.inputs()[0].as<float>()[0] = 4;
  step.run();
  const auto results = step.executor().results();
  EXPECT_EQ(results[0].as<float>()[0], 9);
  EXPECT_EQ(results[1].as<float>()[0], 4);
  EXPECT_EQ(results[2].as<float>()[0], 9);
}

TEST(Executor, RefusesWrongInputs) {
  TestStep step(make_plan(small_graph(), test_kernels()), test_kernels());
  EXPECT_THROW(step.executor().run({}), Error);
  std::vector<TensorView> inputs(step.inputs().begin(), step.inputs().end());
  inputs[0].desc = floats(3);
  EXPECT_THROW(step.executor().run(inputs), Error);
}

TEST(Executor, RefusesAnArenaThatIsTooSmallOrUnaligned) {
  CpuDevice device;
  Program program = make_program(make_plan(small_graph(), test_kernels()), test_kernels());
  Variables variables(*program.plan.graph);
  const Buffer storage = device.allocate(variables.bytes());
  variables.attach(storage.data());
  const Buffer arena = device.allocate(1024);
  EXPECT_THROW(Executor(std::move(program), device, variables, {arena.data(), 64}), Error);
  Program other = make_program(make_plan(small_graph(), test_kernels()), test_kernels());
  EXPECT_THROW(Executor(std::move(other), device, variables, {arena.data() + 4, 512}), Error);
}

TEST(Executor, MeasuresThePeakThatWasPlanned) {
  TestStep step(make_plan(random_graph(1), test_kernels({.workspace = 100})), test_kernels());
  EXPECT_EQ(step.executor().measured_peak_bytes(), 0U);
  step.run();
  EXPECT_EQ(step.executor().measured_peak_bytes(), step.executor().plan().memory.device_bytes);
}

TEST(Executor, ProfilesEveryStep) {
  const KernelTable table = test_kernels({.longest_delay = microseconds(500)});
  TestStep step(make_plan(random_graph(2), table), table);
  step.run();
  const Timeline timeline = step.executor().profile(step.inputs());
  const StepPlan& plan = step.executor().plan();
  ASSERT_EQ(timeline.size(), plan.schedule.steps.size());
  for (std::size_t s = 0; s < timeline.size(); ++s) {
    EXPECT_LE(0, timeline[s].start);
    EXPECT_LE(timeline[s].start, timeline[s].end);
    for (const StepId wait : plan.schedule.steps[s].after) {
      EXPECT_LE(timeline[index_of(wait)].end, timeline[s].start) << "step " << s;
    }
  }
}

TEST(Executor, ProfilesTheSameStepThatItRuns) {
  const StepPlan plan = make_plan(random_graph(3), test_kernels());
  TestStep ran(plan, test_kernels());
  TestStep profiled(plan, test_kernels());
  ran.run();
  profiled.executor().profile(profiled.inputs());
  expect_identical(ran.outcome(), profiled.outcome());
}

class Failing final : public tests::TestOp {
 public:
  Failing(Lane lane, const bool& fails) : TestOp({.lane = lane}), fails_(fails) {}
  std::string_view name() const override { return "failing"; }
  void reference(std::span<const TensorView> in, std::span<const TensorView> out) const override {
    check(!fails_, "the kernel broke");
    Scale(1).reference(in, out);
  }

 private:
  const bool& fails_;
};

TEST(Executor, ThrowsWhatAKernelThrewOnAnyLaneAndRunsAgain) {
  for (const Lane lane : {Lane::compute, Lane::side, Lane::communicate}) {
    bool fails = true;
    auto graph = std::make_shared<Graph>();
    const Value x = graph->input("x", floats(4));
    Value y = emit(Failing(lane, fails), {x});
    for (int i = 0; i < 20; ++i) {  // work on all lanes that waits for the lane that failed
      y = emit(Scale(1, {.lane = i % 2 == 0 ? Lane::side : Lane::compute}), {y});
    }
    graph->output("y", y);
    const KernelTable table = test_kernels();
    TestStep step(make_plan(graph, table), table);
    for (int i = 0; i < 3; ++i) {
      try {
        step.run();
        FAIL() << "no error";
      } catch (const Error& error) {
        EXPECT_STREQ(error.what(), "the kernel broke");
      }
    }
    fails = false;
    step.run();
    EXPECT_EQ(step.executor().results()[0].as<float>()[0], step.inputs()[0].as<float>()[0] + 21);
  }
}

TEST(Executor, ThrowsWhatAKernelThrowsWhileItIsEnqueued) {
  class Refusing final : public Kernel {
   public:
    void run(Stream& /*stream*/, const Operands& /*operands*/) override { throw Error("refused"); }
  };
  Program program = make_program(make_plan(random_graph(4), test_kernels()), test_kernels());
  program.kernels[20] = std::make_unique<Refusing>();
  TestStep step(std::move(program));
  const std::string name = to_string(*step.executor().plan().graph, Compute{NodeId{20}});
  for (int i = 0; i < 2; ++i) {
    try {
      step.run();
      FAIL() << "no error";
    } catch (const Error& error) {
      EXPECT_EQ(error.what(), name + ": refused");
    }
  }
}

TEST(Executor, NamesTheStepOfAnErrorOnTheDeviceIfItWaitsForEach) {
  bool fails = true;
  auto graph = std::make_shared<Graph>();
  const Value x = graph->input("x", floats(4));
  const Value y = emit(Scale(1), {emit(Failing(Lane::side, fails), {emit(Scale(1), {x})})});
  graph->output("y", y);
  const KernelTable table = test_kernels();
  TestStep step(make_program(make_plan(graph, table), table), std::make_unique<CpuDevice>(),
                {.wait_for_each = true});
  try {
    step.run();
    FAIL() << "no error";
  } catch (const Error& error) {
    EXPECT_EQ(error.what(), to_string(*graph, Compute{NodeId{1}}) + ": the kernel broke");
  }
  fails = false;
  step.run();
  EXPECT_EQ(step.executor().results()[0].as<float>()[0], step.inputs()[0].as<float>()[0] + 3);
}

TEST(Executor, GivesIdenticalResultsEveryTime) {
  const KernelTable table = test_kernels({.workspace = 100, .longest_delay = microseconds(100)});
  const StepPlan plan = make_plan(random_graph(5), table);
  const auto first = outcome_of(plan, table);
  for (int i = 0; i < 5; ++i) {
    expect_identical(first, outcome_of(plan, table));
  }
}

TEST(Executor, IssuesCopiesOfFewBytesBesideTheKernels) {
  // Records the lanes for which the executor asks for a stream.
  class Listening final : public Device {
   public:
    explicit Listening(std::vector<Lane>& lanes) : lanes_(lanes) {}
    std::string name() const override { return "listening"; }
    std::size_t memory_bytes() const override { return inner_.memory_bytes(); }
    std::unique_ptr<Stream> make_stream(Lane lane) override {
      lanes_.push_back(lane);
      return inner_.make_stream(lane);
    }
    std::unique_ptr<Event> make_event() override {
      ADD_FAILURE() << "one stream needs no event";
      return inner_.make_event();
    }
    Buffer allocate(std::size_t bytes) override { return inner_.allocate(bytes); }
    Buffer allocate_host(std::size_t bytes) override { return inner_.allocate_host(bytes); }

   private:
    CpuDevice inner_{{.compute_on_caller = true}};
    std::vector<Lane>& lanes_;
  };
  const KernelTable table = test_kernels();
  const StepPlan plan = make_plan(small_graph(), table);  // the step copies 8 bytes in and 12 out
  std::vector<Lane> lanes;
  TestStep step(make_program(plan, table), std::make_unique<Listening>(lanes),
                {.max_compute_stream_copy_bytes = 12});
  for (int i = 0; i < 3; ++i) {
    step.run();
  }
  EXPECT_THAT(lanes, ElementsAre(Lane::compute));
  expect_identical(outcome_of(plan, table), step.outcome());
}

TEST(Executor, KeepsALaneThatCopiesMoreApart) {
  const auto threads = [] {
    const std::filesystem::directory_iterator tasks("/proc/self/task");
    return std::distance(begin(tasks), end(tasks));
  };
  const auto before = threads();
  for (const auto& [few, more_threads] : {std::pair{12U, 0}, {8U, 1}, {7U, 2}}) {
    const TestStep step(make_program(make_plan(small_graph(), test_kernels()), test_kernels()),
                        std::make_unique<CpuDevice>(CpuOptions{.compute_on_caller = true}),
                        {.max_compute_stream_copy_bytes = few});
    EXPECT_EQ(threads(), before + more_threads) << few;
  }
}

TEST(Executor, SwapsWithComputeOnTheCallingThread) {
  int kept = 0;
  for (unsigned seed = 40; seed < 46; ++seed) {
    const StepPlan plain = make_plan(random_graph(seed), test_kernels({.workspace = 100}));
    const StepPlan edited = with_random_edits(plain, seed, 30, kept);
    const CpuOptions options{.link = {.out = 1e7, .in = 1e7}, .compute_on_caller = true};
    expect_identical(outcome_of(plain, test_kernels()),
                     outcome_of(edited, test_kernels(), options));
  }
  EXPECT_GT(kept, 20);
}

TEST(Executor, SwapsAndRecomputesWithoutChangingABit) {
  int kept = 0;
  for (unsigned seed = 0; seed < 12; ++seed) {
    const StepPlan plain = make_plan(random_graph(seed), test_kernels({.workspace = 100}));
    const StepPlan edited = with_random_edits(plain, seed, 30, kept);
    expect_identical(outcome_of(plain, test_kernels()), outcome_of(edited, test_kernels()));
  }
  EXPECT_GT(kept, 50) << "swaps and recomputations that took place";
}

TEST(Executor, WaitsForSlowCopiesAndSlowKernels) {
  const KernelTable slow = test_kernels({.workspace = 100, .longest_delay = microseconds(200)});
  int kept = 0;
  for (unsigned seed = 20; seed < 24; ++seed) {
    const StepPlan plain = make_plan(random_graph(seed), slow);
    const StepPlan edited = with_random_edits(plain, seed, 30, kept);
    const auto expected = outcome_of(plain, test_kernels());
    expect_identical(expected,
                     outcome_of(edited, test_kernels(), {.link = {.out = 1e6, .in = 1e6}}));
    expect_identical(expected, outcome_of(edited, slow, {.link = {.out = 1e6, .in = 1e6}}));
  }
  EXPECT_GT(kept, 15);
}

TEST(Executor, GivesItsKernelsToAnotherPlanOfTheStep) {
  int kept = 0;
  for (unsigned seed = 50; seed < 54; ++seed) {
    const StepPlan plain = make_plan(random_graph(seed), test_kernels({.workspace = 100}));
    const StepPlan edited = with_random_edits(plain, seed, 30, kept);
    TestStep expected(plain, test_kernels());
    TestStep replanned(plain, test_kernels());
    for (int i = 0; i < 4; ++i) {
      if (i == 2) {
        replanned.replan(edited);
      }
      expected.run();
      replanned.run();
    }
    EXPECT_TRUE(replanned.canaries_are_intact());
    expect_identical(expected.outcome(), replanned.outcome());
  }
  EXPECT_GT(kept, 10);
}

TEST(Executor, SwapsToTheHostAndBack) {
  const StepPlan swapped = swapping_plan();
  const StepPlan plain = make_plan(swapped.graph, test_kernels());
  EXPECT_EQ(swapped.memory.host_bytes, 256U);
  EXPECT_EQ(swapped.memory.device_bytes, 3 * 256U);
  EXPECT_EQ(plain.memory.device_bytes, 3 * 256U);
  expect_identical(outcome_of(plain, test_kernels()), outcome_of(swapped, test_kernels()));
}

TEST(Executor, SwapsIntoAHostArenaThatIsGiven) {
  const StepPlan plan = swapping_plan();
  ASSERT_EQ(plan.memory.host_bytes, 256U);
  CpuDevice host;
  const Buffer bytes = host.allocate_host(256);
  std::memset(bytes.data(), 0, bytes.bytes());
  TestStep step(make_program(plan, test_kernels()), std::make_unique<CpuDevice>(),
                {.max_compute_stream_copy_bytes = 0, .host_arena = {bytes.data(), bytes.bytes()}});
  step.run();
  expect_identical(outcome_of(plan, test_kernels()), step.outcome());
  EXPECT_EQ(reinterpret_cast<const float*>(bytes.data())[1], step.inputs()[0].as<float>()[1] + 1);
}

TEST(Executor, RefusesAHostArenaThatIsTooSmall) {
  CpuDevice host;
  const Buffer bytes = host.allocate_host(255);
  const std::string error = tests::error_of([&] {
    const TestStep step(make_program(swapping_plan(), test_kernels()),
                        std::make_unique<CpuDevice>(),
                        {.host_arena = {bytes.data(), bytes.bytes()}});
  });
  EXPECT_EQ(error, "the host arena has 255 bytes, the plan needs 256");
}

// Overwrites freed blocks with NaN right after the last node that uses them.
class Forgetting final : public Kernel {
 public:
  explicit Forgetting(std::unique_ptr<Kernel> inner) : inner_(std::move(inner)) {}
  void forget(std::span<std::byte> bytes) { freed_.push_back(bytes); }
  void run(Stream& stream, const Operands& operands) override {
    inner_->run(stream, operands);
    stream.host([this] {
      for (const std::span<std::byte> bytes : freed_) {
        std::memset(bytes.data(), 0xFF, bytes.size());
      }
    });
  }

 private:
  std::unique_ptr<Kernel> inner_;
  std::vector<std::span<std::byte>> freed_;
};

TEST(Executor, NeverReadsBytesThatWereFreed) {
  int forgotten = 0;
  for (unsigned seed = 30; seed < 36; ++seed) {
    const StepPlan plan = make_plan(random_graph(seed), test_kernels({.workspace = 100}));
    Program program = make_program(plan, test_kernels());
    std::vector<Forgetting*> kernels;
    for (auto& kernel : program.kernels) {
      auto forgetting = std::make_unique<Forgetting>(std::move(kernel));
      kernels.push_back(forgetting.get());
      kernel = std::move(forgetting);
    }
    TestStep step(std::move(program));
    const BlockIndex index(*plan.graph, plan.memory);
    for (const LiveInterval& interval : live_intervals(*plan.graph, plan.schedule)) {
      const Block& block = *index.tensor(interval.tensor, interval.first);
      const auto* compute =
          std::get_if<Compute>(&plan.schedule.steps[index_of(interval.last)].action);
      const bool reused_in_place =
          std::any_of(plan.memory.blocks.begin(), plan.memory.blocks.end(), [&](const Block& b) {
            return b.first == interval.last && b.offset == block.offset && &b != &block;
          });
      const Lane lane = plan.schedule.steps[index_of(interval.last)].lane;
      const bool by_one_lane =  // otherwise another lane may still read the block
          std::ranges::all_of(interval.touched_by, [&](StepId toucher) {
            return plan.schedule.steps[index_of(toucher)].lane == lane;
          });
      if (compute != nullptr && !reused_in_place && by_one_lane) {
        kernels[index_of(compute->node)]->forget({step.arena() + block.offset, block.bytes});
        ++forgotten;
      }
    }
    for (int i = 0; i < 3; ++i) {
      step.run();
    }
    expect_identical(outcome_of(plan, test_kernels()), step.outcome());
  }
  EXPECT_GT(forgotten, 100);
}

TEST(Executor, SwapsToTheDiskAndBack) {
  const StepPlan stored = tests::storing_plan(5000);
  const StepPlan plain = make_plan(stored.graph, test_kernels());
  EXPECT_EQ(stored.memory.disk_bytes, 5 * disk_alignment);
  expect_identical(outcome_of(plain, test_kernels()), outcome_of(stored, test_kernels()));
}

TEST(Executor, VerifiesWhatComesBackFromTheDisk) {
  const StepPlan stored = tests::storing_plan(5000);
  TestStep step(make_program(stored, test_kernels()), std::make_unique<CpuDevice>(),
                {.verify = true});
  step.run();
  TestStep plain(make_plan(stored.graph, test_kernels()), test_kernels());
  plain.run();
  expect_identical(plain.outcome(), step.outcome());
}

TEST(Executor, RefusesAPlanWithADiskThatItDoesNotHave) {
  const StepPlan plan = tests::storing_plan();
  CpuDevice device;
  Variables variables(*plan.graph);
  const Buffer arena = device.allocate(plan.memory.device_bytes);
  EXPECT_THAT(tests::error_of([&] {
                const Executor executor(make_program(plan, test_kernels()), device, variables,
                                        {arena.data(), arena.bytes()});
              }),
              testing::HasSubstr("the executor has no file"));
}

// The step does not hang, and the run learns of the first failed transfer.
TEST(Executor, ThrowsTheErrorOfTheDisk) {
  const DiskFile file(std::filesystem::temp_directory_path(), "--lms_disk=here");
  const StepPlan plan = tests::storing_plan();
  StepPlan unwritten = plan;
  // The load reads far behind what the store has written.
  unwritten.schedule.steps[4].action = unwritten.schedule.steps[6].action;
  unwritten.memory.disk_blocks[0].offset = 64 * disk_alignment;
  TestStep step(make_program(unwritten, test_kernels()), std::make_unique<CpuDevice>(),
                {.max_compute_stream_copy_bytes = 0, .disk = &file});
  for (int run = 0; run < 2; ++run) {
    EXPECT_THAT(tests::error_of([&] { step.run(); }),
                testing::HasSubstr("--lms_disk=here: cannot read 4096 bytes of its file"));
  }
}

}  // namespace
}  // namespace cnn
