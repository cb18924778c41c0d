// Steps that are broken on purpose, by a plan or by a device, and how that is noticed.
#include "runtime/memory_watch.h"

#include <cmath>
#include <functional>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <memory>
#include <utility>
#include <vector>

#include "runtime/executor.h"
#include "tests/support/error_of.h"
#include "tests/support/swapping_step.h"
#include "tests/support/test_graphs.h"
#include "tests/support/test_ops.h"
#include "tests/support/test_step.h"

namespace cnn {
namespace {

using ::testing::HasSubstr;
using tests::Combine;
using tests::error_of;
using tests::floats;
using tests::random_graph;
using tests::Scale;
using tests::swapping_plan;
using tests::test_kernels;
using tests::TestStep;
using tests::with_random_edits;

constexpr ExecutorOptions verified{.verify = true, .max_compute_stream_copy_bytes = 0};

// A copy that is asked for: true to leave it out.
using Fault = std::function<bool(const std::byte* to, const std::byte* from)>;

class FaultyStream final : public Stream {
 public:
  FaultyStream(std::unique_ptr<Stream> inner, const Fault& fault)
      : inner_(std::move(inner)), fault_(fault) {}
  void copy(std::byte* to, const std::byte* from, std::size_t bytes) override {
    if (!fault_(to, from)) {
      inner_->copy(to, from, bytes);
    }
  }
  void host(std::function<void()> work) override { inner_->host(std::move(work)); }
  void record(Event& event) override { inner_->record(event); }
  void wait(Event& event) override { inner_->wait(event); }
  void synchronize() override { inner_->synchronize(); }

 private:
  std::unique_ptr<Stream> inner_;
  const Fault& fault_;
};

class FaultyDevice final : public Device {
 public:
  explicit FaultyDevice(const Fault& fault) : fault_(fault) {}
  std::string name() const override { return "faulty"; }
  std::size_t memory_bytes() const override { return inner_.memory_bytes(); }
  std::unique_ptr<Stream> make_stream(Lane lane) override {
    return std::make_unique<FaultyStream>(inner_.make_stream(lane), fault_);
  }
  std::unique_ptr<Event> make_event() override { return inner_.make_event(); }
  Buffer allocate(std::size_t bytes) override { return inner_.allocate(bytes); }
  Buffer allocate_host(std::size_t bytes) override { return inner_.allocate_host(bytes); }

 private:
  CpuDevice inner_;
  const Fault& fault_;
};

// The swapping step on a device that can be broken.
class FaultySwap {
 public:
  FaultySwap()
      : host_(CpuDevice().allocate_host(256)),
        step_(make_program(swapping_plan(), test_kernels()), std::make_unique<FaultyDevice>(fault_),
              {.verify = true,
               .max_compute_stream_copy_bytes = 0,
               .host_arena = {host_.data(), host_.bytes()}}) {}

  std::string error_of_run() {
    return error_of([&] { step_.run(); });
  }
  void break_with(Fault fault) { fault_ = std::move(fault); }
  const std::byte* host() const { return host_.data(); }

 private:
  Buffer host_;
  Fault fault_ = [](const std::byte*, const std::byte*) { return false; };
  TestStep step_;
};

constexpr const char* came_back =
    "fetch scale#0: scale#0 came back from the host with other bytes than had left, in step 5";

TEST(MemoryWatch, FindsAFetchThatDoesNotHappen) {
  FaultySwap swap;
  EXPECT_EQ(swap.error_of_run(), "");
  swap.break_with([&](const std::byte*, const std::byte* from) { return from == swap.host(); });
  EXPECT_THAT(swap.error_of_run(), HasSubstr(came_back));
}

TEST(MemoryWatch, FindsAStaleCopyOnTheHost) {
  FaultySwap swap;
  EXPECT_EQ(swap.error_of_run(), "");
  swap.break_with([&](const std::byte* to, const std::byte*) { return to == swap.host(); });
  EXPECT_THAT(swap.error_of_run(), HasSubstr(came_back));
  swap.break_with([](const std::byte*, const std::byte*) { return false; });
  EXPECT_EQ(swap.error_of_run(), "") << "it is whole again";
}

// Reads its first operand where another tensor was.
class Straying final : public Kernel {
 public:
  Straying(std::unique_ptr<Kernel> inner, std::byte* const& arena, std::size_t offset)
      : inner_(std::move(inner)), arena_(arena), offset_(offset) {}
  void run(Stream& stream, const Operands& operands) override {
    operands_ = operands;
    operands_.in[0].data = arena_ + offset_;
    inner_->run(stream, operands_);
  }

 private:
  std::unique_ptr<Kernel> inner_;
  std::byte* const& arena_;
  std::size_t offset_;
  Operands operands_;
};

TEST(MemoryWatch, PutsNaNsWhereAKernelReadsWhatIsNoLongerHeld) {
  auto graph = std::make_shared<Graph>();
  const Value a = emit(Scale(1), {graph->input("x", floats(64))});
  const Value b = emit(Scale(2), {a});
  graph->output("d", emit(Scale(3), {emit(Combine(), {b, a})}));
  const StepPlan plan = make_plan(graph, test_kernels());
  const BlockIndex index(*graph, plan.memory);
  const auto offset = [&](Value value, std::uint32_t step) {
    return index.tensor(value.id, StepId{step})->offset;
  };
  const Value d{graph.get(), graph->outputs()[0].tensor};
  const std::size_t freed = offset(a, 2) == offset(d, 4) ? offset(b, 2) : offset(a, 2);
  for (const bool watched : {false, true}) {
    Program program = make_program(plan, test_kernels());
    std::byte* arena = nullptr;
    program.kernels[3] = std::make_unique<Straying>(std::move(program.kernels[3]), arena, freed);
    TestStep step(std::move(program), std::make_unique<CpuDevice>(),
                  {.verify = watched, .max_compute_stream_copy_bytes = 0});
    arena = step.arena();
    step.run();
    EXPECT_EQ(std::isnan(step.outcome()[0]), watched);
  }
}

TEST(MemoryWatch, ChangesNoBitOfAStepThatIsRight) {
  int kept = 0;
  for (unsigned seed = 60; seed < 66; ++seed) {
    const StepPlan plain = make_plan(random_graph(seed), test_kernels({.workspace = 100}));
    const StepPlan edited = with_random_edits(plain, seed, 30, kept);
    TestStep expected(plain, test_kernels());
    TestStep watched(make_program(edited, test_kernels()), std::make_unique<CpuDevice>(), verified);
    for (int i = 0; i < 3; ++i) {
      expected.run();
      watched.run();
    }
    EXPECT_TRUE(tests::identical(expected.outcome(), watched.outcome())) << seed;
    EXPECT_TRUE(watched.canaries_are_intact());
  }
  EXPECT_GT(kept, 20);
}

TEST(MemoryWatch, LetsAnExecutorMove) {
  TestStep step(make_program(swapping_plan(), test_kernels()), std::make_unique<CpuDevice>(),
                verified);
  Executor moved = std::move(step.executor());
  EXPECT_NO_THROW(moved.run(step.inputs()));
  EXPECT_NO_THROW(moved.run(step.inputs()));
}

}  // namespace
}  // namespace cnn
