// Logs a step with gradient exchange on device streams, both enqueued and recorded. The log shows
// which lane reduces each bucket and the events around it; no kernel computes values.
#include <algorithm>
#include <gtest/gtest.h>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "layers/all_reduce.h"
#include "layers/stream_exchange.h"
#include "tests/support/test_ops.h"
#include "tests/support/test_step.h"

namespace cnn::tests {
namespace {

using Log = std::vector<std::string>;

class NumberedEvent final : public Event {
 public:
  explicit NumberedEvent(int n) : number(n) {}
  int number;
};

class LoggingStream final : public Stream {
 public:
  LoggingStream(Lane lane, Log& log) : lane_(name_of(lane)), log_(log) {}
  void copy(std::byte* /*to*/, const std::byte* /*from*/, std::size_t /*bytes*/) override {}
  void host(std::function<void()> /*work*/) override {}
  void record(Event& event) override { say("record " + number_of(event)); }
  void wait(Event& event) override { say("wait " + number_of(event)); }
  void stamp(std::chrono::steady_clock::time_point& /*at*/) override {}
  void synchronize() override {}
  void say(const std::string& what) { log_.push_back(lane_ + " " + what); }

 private:
  static std::string number_of(Event& event) {
    return std::to_string(dynamic_cast<NumberedEvent&>(event).number);
  }
  std::string lane_;
  Log& log_;
};

class LoggingDevice final : public Device {
 public:
  explicit LoggingDevice(Log& log) : log_(log) {}
  std::string name() const override { return "logging"; }
  std::size_t memory_bytes() const override { return 1U << 20U; }
  std::unique_ptr<Stream> make_stream(Lane lane) override {
    return std::make_unique<LoggingStream>(lane, log_);
  }
  std::unique_ptr<Event> make_event() override {
    return std::make_unique<NumberedEvent>(++events_);
  }
  Buffer allocate(std::size_t bytes) override { return memory_.allocate(bytes); }
  Buffer allocate_host(std::size_t bytes) override { return memory_.allocate_host(bytes); }
  std::unique_ptr<Recording> record(std::span<Stream* const> /*streams*/,
                                    const std::function<void()>& enqueue) override {
    class Replays final : public Recording {
     public:
      explicit Replays(Log& log) : log_(log) {}
      void replay(Stream& /*stream*/) override { log_.emplace_back("replay"); }

     private:
      Log& log_;
    };
    enqueue();
    return std::make_unique<Replays>(log_);
  }

 private:
  CpuDevice memory_;
  Log& log_;
  int events_ = 0;
};

class LoggingKernel final : public Kernel {
 public:
  explicit LoggingKernel(std::string name) : name_(std::move(name)) {}
  void run(Stream& stream, const Operands& /*operands*/) override {
    dynamic_cast<LoggingStream&>(stream).say("run " + name_);
  }

 private:
  std::string name_;
};

class LoggingCommunicator final : public StreamCommunicator {
 public:
  void prepare(std::size_t /*bucket*/, std::size_t /*elements*/) override {}
  void all_reduce(Stream& stream, std::size_t bucket, std::span<const std::span<float>> pieces,
                  float /*factor*/) override {
    dynamic_cast<LoggingStream&>(stream).say("reduce " + std::to_string(bucket) + " of " +
                                             std::to_string(pieces.size()));
  }
};

// Returns a step of three gradients, the first in a bucket of its own, and a node that needs all
// their sums.
TestStep exchanging_step(Log& log) {
  auto graph = std::make_shared<Graph>();
  const Value x = graph->state("x", floats(4), {}, false);
  std::vector<Value> gradients{emit(Scale(2), {x})};
  gradients.push_back(emit(Relu(), {gradients[0]}));
  gradients.push_back(emit(Relu(), {gradients[1]}));
  layers::append_exchange(gradients, {.first = 16, .others = 32, .last = 32}, 0.5F);
  graph->output("sum",
                emit(Combine(), {emit(Combine(), {gradients[0], gradients[1]}), gradients[2]}));
  KernelTable table;
  layers::add_stream_exchange(table, std::make_shared<LoggingCommunicator>());
  table.otherwise(
      [](const Op& /*op*/, const Signature& request) {
        return KernelSpec{.in = request.in, .out = request.out};
      },
      [](const Op& op, const Signature& /*signature*/) {
        return std::make_unique<LoggingKernel>(std::string(op.name()));
      });
  return TestStep(make_program(make_plan(graph, table), table),
                  std::make_unique<LoggingDevice>(log));
}

std::ptrdiff_t place_of(const Log& log, const std::string& entry) {
  const auto found = std::ranges::find(log, entry);
  EXPECT_NE(found, log.end()) << entry;
  return found - log.begin();
}

// Returns the number of the event in the nearest entry with this prefix, before or after `place`.
std::string event_near(const Log& log, std::ptrdiff_t place, int direction,
                       const std::string& start) {
  for (; place >= 0 && place < std::ssize(log); place += direction) {
    const std::string& entry = log[static_cast<std::size_t>(place)];
    if (entry.starts_with(start)) {
      return entry.substr(start.size());
    }
  }
  return "none";
}

TEST(CudaExchangeStep, ReducesEachBucketBehindItsGradientsAndBeforeWhatNeedsTheSum) {
  Log log;
  TestStep step = exchanging_step(log);
  step.run();
  for (const auto& [reduction, producer] :
       {std::pair("communicate reduce 0 of 1", "compute run scale"),
        std::pair("communicate reduce 1 of 2", "compute run relu")}) {
    const std::ptrdiff_t reduced = place_of(log, reduction);
    const std::string made = event_near(log, reduced, -1, "communicate wait ");
    const std::ptrdiff_t recorded = place_of(log, "compute record " + made);
    EXPECT_LT(place_of(log, producer), recorded) << testing::PrintToString(log);
    EXPECT_LT(recorded, reduced);
    const std::string done = event_near(log, reduced, 1, "communicate record ");
    EXPECT_LT(place_of(log, "compute wait " + done), place_of(log, "compute run combine"));
  }
  // The compute lane goes on while the first bucket is exchanged.
  EXPECT_LT(place_of(log, "communicate reduce 0 of 1"), place_of(log, "communicate reduce 1 of 2"));
  const std::string first =
      event_near(log, place_of(log, "communicate reduce 0 of 1"), 1, "communicate record ");
  EXPECT_LT(place_of(log, "compute run relu"), place_of(log, "compute wait " + first));
}

TEST(CudaExchangeStep, IsRecordedWithItsReductionsOnceAndReplayed) {
  Log log;
  TestStep step = exchanging_step(log);
  step.run();
  const Log enqueued = log;
  log.clear();
  step.run();
  Log recorded = enqueued;
  recorded.emplace_back("replay");
  EXPECT_EQ(log, recorded);
  log.clear();
  step.run();
  EXPECT_EQ(log, Log{"replay"});
}

}  // namespace
}  // namespace cnn::tests
