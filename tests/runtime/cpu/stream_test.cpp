#include "runtime/cpu/stream.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <exception>
#include <filesystem>
#include <future>
#include <gtest/gtest.h>
#include <iterator>
#include <memory>
#include <thread>
#include <vector>

#include "runtime/cpu/cpu_mask.h"
#include "runtime/cpu/device.h"
#include "runtime/error.h"

namespace cnn {
namespace {

using std::chrono::milliseconds;

TEST(CpuStream, RunsWorkInOrderOnAnotherThread) {
  CpuDevice device;
  const auto stream = device.make_stream(Lane::compute);
  std::vector<int> order;
  std::thread::id thread = std::this_thread::get_id();
  for (int i = 0; i < 3000; ++i) {  // more than the queue holds
    stream->host([&order, i] { order.push_back(i); });
  }
  stream->host([&thread] { thread = std::this_thread::get_id(); });
  stream->synchronize();
  ASSERT_EQ(order.size(), 3000U);
  EXPECT_TRUE(std::is_sorted(order.begin(), order.end()));
  EXPECT_NE(thread, std::this_thread::get_id());
}

TEST(CpuStream, Copies) {
  CpuDevice device;
  const auto stream = device.make_stream(Lane::copy_in);
  const std::vector<std::byte> from(1000, std::byte{7});
  std::vector<std::byte> to(1000);
  stream->copy(to.data(), from.data(), 1000);
  stream->synchronize();
  EXPECT_EQ(to, from);
}

TEST(CpuStream, LanesOverlap) {
  CpuDevice device;
  const auto a = device.make_stream(Lane::compute);
  const auto b = device.make_stream(Lane::side);
  std::promise<void> from_a;
  std::promise<void> from_b;
  // Each waits for the other: possible only if both run at once.
  a->host([&] {
    from_a.set_value();
    from_b.get_future().wait();
  });
  b->host([&] {
    from_b.set_value();
    from_a.get_future().wait();
  });
  a->synchronize();
  b->synchronize();
}

TEST(CpuStream, RunsComputeOnTheCallerWhenAsked) {
  CpuDevice device({.compute_on_caller = true});
  const auto compute = device.make_stream(Lane::compute);
  const auto side = device.make_stream(Lane::side);
  std::thread::id of_compute;
  std::thread::id of_side;
  compute->host([&] { of_compute = std::this_thread::get_id(); });
  side->host([&] { of_side = std::this_thread::get_id(); });
  EXPECT_EQ(of_compute, std::thread::id()) << "only once it is synchronised";
  compute->synchronize();
  side->synchronize();
  EXPECT_EQ(of_compute, std::this_thread::get_id());
  EXPECT_NE(of_side, std::this_thread::get_id());
}

TEST(CpuStream, StartsNoThreadForWhatTheCallerRuns) {
  const auto threads = [] {
    const std::filesystem::directory_iterator tasks("/proc/self/task");
    return std::distance(begin(tasks), end(tasks));
  };
  const auto before = threads();
  CpuDevice device({.compute_on_caller = true});
  const auto compute = device.make_stream(Lane::compute);
  compute->host([] {});
  compute->synchronize();
  EXPECT_EQ(threads(), before);
}

TEST(CpuStream, RunsMoreOnTheCallerThanTheQueueHolds) {
  CpuDevice device({.compute_on_caller = true});
  const auto stream = device.make_stream(Lane::compute);
  std::vector<int> order;
  for (int i = 0; i < 3000; ++i) {
    stream->host([&order, i] { order.push_back(i); });
  }
  stream->synchronize();
  EXPECT_EQ(order.size(), 3000U);
  EXPECT_TRUE(std::is_sorted(order.begin(), order.end()));
}

TEST(CpuStream, OverlapsOtherLanesWithTheCaller) {
  CpuDevice device({.compute_on_caller = true});
  const auto compute = device.make_stream(Lane::compute);
  const auto copies = device.make_stream(Lane::copy_out);
  const auto begun = device.make_event();
  const auto copied = device.make_event();
  std::promise<void> from_compute;
  bool seen = false;
  compute->record(*begun);
  copies->wait(*begun);
  copies->host([&] {
    from_compute.get_future().wait();
    seen = true;
  });
  copies->record(*copied);
  compute->host([&] { from_compute.set_value(); });
  compute->wait(*copied);
  compute->host([&] { EXPECT_TRUE(seen); });
  compute->synchronize();
  copies->synchronize();
}

TEST(CpuStream, PreparesEveryThreadThatRunsItsWork) {
  int prepared = 0;
  CpuDevice device({.on_stream_start = [&](Lane) { ++prepared; }, .compute_on_caller = true});
  const auto stream = device.make_stream(Lane::compute);
  for (int i = 0; i < 3; ++i) {
    stream->host([] {});
    stream->synchronize();
  }
  EXPECT_EQ(prepared, 1);
  std::thread([&] {
    stream->host([] {});
    stream->synchronize();
  }).join();
  EXPECT_EQ(prepared, 2);
}

TEST(CpuStream, KeepsTheCallerOnItsCoreWhileItRunsCompute) {
  CpuMask before;
  ASSERT_TRUE(before.read());
  int core = 0;
  while (!before.has(core)) {
    ++core;
  }
  CpuDevice device({.compute_on_caller = true, .caller_cpu = core});
  const auto stream = device.make_stream(Lane::compute);
  CpuMask during;
  stream->host([&] { during.read(); });
  stream->synchronize();
  CpuMask after;
  ASSERT_TRUE(after.read());
  for (int cpu = 0; cpu < CpuMask::max_cpus; ++cpu) {
    EXPECT_EQ(during.has(cpu), cpu == core);
    EXPECT_EQ(after.has(cpu), before.has(cpu));
  }
}

TEST(CpuStream, ThrowsErrorsOfTheCallersWorkWhenItIsSynchronised) {
  CpuDevice device({.compute_on_caller = true});
  const auto compute = device.make_stream(Lane::compute);
  const auto waiting = device.make_stream(Lane::side);
  const auto event = device.make_event();
  bool ran = false;
  EXPECT_NO_THROW(compute->host([] { throw Error("broken"); }));
  compute->record(*event);
  waiting->wait(*event);
  waiting->host([&ran] { ran = true; });
  EXPECT_THROW(compute->synchronize(), Error);
  EXPECT_THROW(waiting->synchronize(), Error);
  EXPECT_FALSE(ran);
  EXPECT_NO_THROW(compute->synchronize());
}

TEST(CpuEvent, OrdersTwoStreams) {
  CpuDevice device;
  const auto first = device.make_stream(Lane::compute);
  const auto second = device.make_stream(Lane::side);
  const auto event = device.make_event();
  for (int round = 0; round < 50; ++round) {  // the same event again and again
    int value = 0;
    int seen = 0;
    first->host([&value] {
      std::this_thread::sleep_for(std::chrono::microseconds(100));
      value = 1;
    });
    first->record(*event);
    second->wait(*event);
    second->host([&] { seen = value; });
    second->synchronize();
    first->synchronize();
    EXPECT_EQ(seen, 1);
  }
}

// Record 2 is made first, on another thread, and has to wait for record 1.
TEST(CpuEvent, ReachesItsRecordsInTheirOrder) {
  CpuEvent event;
  EXPECT_EQ(event.records(), 0U);
  EXPECT_EQ(event.add_record(), 1U);
  EXPECT_EQ(event.add_record(), 2U);
  std::atomic<bool> reached_second = false;
  std::thread second([&] {
    event.reach(2, std::make_exception_ptr(Error("of the second")));
    reached_second = true;
  });
  std::this_thread::sleep_for(milliseconds(5));
  EXPECT_FALSE(reached_second);
  event.reach(1, nullptr);
  second.join();
  EXPECT_THROW(std::rethrow_exception(event.wait(2)), Error);
}

TEST(CpuStream, CopiesByItsCopierAndPreparesBeforeTheFirstEntry) {
  std::vector<int> order;
  CpuStream stream(
      Runner::feeder, {}, [&] { order.push_back(0); }, Copier());
  std::byte from{9}, to{};
  stream.copy(&to, &from, 1);
  stream.host([&] { order.push_back(to == from ? 1 : 2); });
  EXPECT_TRUE(order.empty()) << "the feeder runs nothing before it synchronises";
  stream.synchronize();
  EXPECT_EQ(order, (std::vector{0, 1}));
}

TEST(CpuEvent, IsMetAtOnceIfItWasNeverRecorded) {
  CpuDevice device;
  const auto stream = device.make_stream(Lane::compute);
  const auto event = device.make_event();
  stream->wait(*event);
  EXPECT_NO_THROW(stream->synchronize());
}

TEST(CpuEvent, MakesAWaitStandForTheRecordsBeforeItOnly) {
  CpuDevice device;
  const auto fast = device.make_stream(Lane::compute);
  const auto slow = device.make_stream(Lane::side);
  const auto event = device.make_event();
  std::promise<void> release;
  fast->record(*event);
  fast->wait(*event);
  slow->host([&] { release.get_future().wait(); });
  slow->record(*event);  // moved: but the wait came before
  fast->synchronize();
  release.set_value();
  slow->synchronize();
}

TEST(CpuEvent, MayBeWaitedForByManyStreams) {
  CpuDevice device;
  const auto source = device.make_stream(Lane::compute);
  const auto event = device.make_event();
  std::atomic<int> value = 0;
  std::atomic<int> sum = 0;
  source->host([&] {
    std::this_thread::sleep_for(milliseconds(5));
    value = 1;
  });
  source->record(*event);
  std::vector<std::unique_ptr<Stream>> streams;
  for (int i = 0; i < 4; ++i) {
    streams.push_back(device.make_stream(Lane::side));
    streams.back()->wait(*event);
    streams.back()->host([&] { sum += value; });
  }
  for (const auto& stream : streams) {
    stream->synchronize();
  }
  EXPECT_EQ(sum, 4);
  source->synchronize();
}

TEST(CpuStream, ThrowsTheFirstErrorOnceAndSkipsTheWorkBehindIt) {
  CpuDevice device;
  const auto stream = device.make_stream(Lane::compute);
  bool ran = false;
  stream->host([] { throw Error("first"); });
  stream->host([] { throw Error("second"); });
  stream->host([&ran] { ran = true; });
  try {
    stream->synchronize();
    FAIL() << "no error";
  } catch (const Error& error) {
    EXPECT_STREQ(error.what(), "first");
  }
  EXPECT_FALSE(ran);
  stream->host([&ran] { ran = true; });
  EXPECT_NO_THROW(stream->synchronize());
  EXPECT_TRUE(ran);
}

TEST(CpuStream, PassesAnErrorOnToThoseWhoWaitForIt) {
  CpuDevice device;
  const auto failing = device.make_stream(Lane::compute);
  const auto waiting = device.make_stream(Lane::side);
  const auto event = device.make_event();
  bool ran = false;
  failing->host([] { throw Error("broken"); });
  failing->record(*event);
  waiting->wait(*event);
  waiting->host([&ran] { ran = true; });
  EXPECT_THROW(waiting->synchronize(), Error);
  EXPECT_FALSE(ran);
  EXPECT_THROW(failing->synchronize(), Error);
}

TEST(CpuStream, FinishesItsWorkBeforeItEnds) {
  int done = 0;
  {
    CpuDevice device;
    const auto stream = device.make_stream(Lane::compute);
    for (int i = 0; i < 10; ++i) {
      stream->host([&done] { ++done; });
    }
  }
  EXPECT_EQ(done, 10);
}

}  // namespace
}  // namespace cnn
