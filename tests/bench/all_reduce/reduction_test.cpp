#include "bench/all_reduce/reduction.h"

#include <atomic>
#include <chrono>
#include <cmath>
#include <csignal>
#include <functional>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <limits>
#include <optional>
#include <thread>
#include <vector>

#include "bench/machine/cpu_backend.h"
#include "bench/ranks/exchange_flags.h"
#include "bench/ranks/interruption.h"
#include "runtime/error.h"

namespace cnn::bench {
namespace {

constexpr std::size_t buffer_elements = 4096;

Config reducing_ranks(int ranks) {
  Config config{.device = DeviceKind::cpu};
  config.variable_update = VariableUpdate::replicated;
  config.num_gpus = ranks;
  config.cpu.intra_threads = 1;
  config.comm.spec = "direct";
  return config;
}

using RankTest = std::function<void(Reduction&)>;

// Runs the work on each of two ranks. loops: replaces the processor's own loops for the sums.
void on_two_ranks(const RankTest& work, const allreduce::simd::Loops* loops = nullptr,
                  std::optional<int> signal = {}) {
  const Config config = reducing_ranks(2);
  Console console;
  Interruption interruption(console);
  if (signal) {
    std::raise(*signal);
  }
  run_as_threads(config, cpu_backend().make(config), std::size_t{16} << 20U,
                 [&](const RankEnvironment& place) {
                   const RankEnvironment own{
                       place.transport, loops != nullptr ? *loops : place.loops, place.topology};
                   const Exchange exchange = make_exchange(config, place.topology, true);
                   Reduction reduction(own, exchange.settings, buffer_elements, interruption);
                   work(reduction);
                 });
}

TEST(ReductionTiming, IsTheLeastAndTheMedianOfItsSamples) {
  EXPECT_EQ(timing_of({3}).least, 3);
  EXPECT_EQ(timing_of({3}).median, 3);
  EXPECT_EQ(timing_of({3, 1, 10}).least, 1);
  EXPECT_EQ(timing_of({3, 1, 10}).median, 3);
  EXPECT_EQ(timing_of({3, 1, 2, 10}).median, 2.5);
}

TEST(ReductionTiming, RepeatsSmallReductionsOften) {
  EXPECT_EQ(repetitions(4), 100);
  EXPECT_EQ(repetitions(std::size_t{1} << 20U), 4);
  EXPECT_EQ(repetitions(std::size_t{4} << 20U), 1);
  EXPECT_EQ(repetitions(std::size_t{1} << 40U), 1);
}

TEST(WorseOfTwo, IsTheLargerOrNotANumber) {
  const double none = std::numeric_limits<double>::quiet_NaN();
  EXPECT_EQ(worse_of(1, 2), 2);
  EXPECT_EQ(worse_of(2, 1), 2);
  EXPECT_TRUE(std::isnan(worse_of(none, 0)));
  EXPECT_TRUE(std::isnan(worse_of(0, none)));
}

TEST(Reduction, AddsTheBucketsOfAllRanksExactly) {
  on_two_ranks([](Reduction& reduction) {
    reduction.add_bucket(1000);
    reduction.add_bucket(1);
    EXPECT_EQ(reduction.error(), 0);
    reduction.reduce();
    EXPECT_EQ(reduction.error(), 0) << "each reduction fills its bucket again";
    EXPECT_EQ(reduction.choice(0).algorithm->name, "direct");
  });
}

TEST(Reduction, TakesNoMoreThanItsBufferHolds) {
  on_two_ranks([](Reduction& reduction) {
    reduction.add_bucket(1);
    reduction.add_bucket(buffer_elements - 1);
    EXPECT_EQ(reduction.error(), 0);
    EXPECT_THROW(reduction.add_bucket(1), Error);
    reduction.remove_buckets();
    reduction.add_bucket(buffer_elements);
    EXPECT_EQ(reduction.error(), 0);
  });
}

// Makes the first element of a sum NaN, in only one of a rank's calls per bucket.
void add_with_an_early_nan(const allreduce::simd::Sum& sum) {
  allreduce::simd::plain_loops().sum(sum);
  constexpr std::size_t of_buckets = 100;  // control messages between ranks are shorter
  if (sum.n >= of_buckets) {
    sum.to[0][0] = std::numeric_limits<float>::quiet_NaN();
  }
}

TEST(Reduction, FindsASumThatIsNotANumberBeforeOthersThatAreRight) {
  allreduce::simd::Loops loops = allreduce::simd::plain_loops();
  loops.sum = add_with_an_early_nan;
  on_two_ranks(
      [](Reduction& reduction) {
        reduction.add_bucket(1000);
        EXPECT_TRUE(std::isnan(reduction.error()));
      },
      &loops);
}

TEST(Reduction, TimesEachContestantOnAllRanksInEachRound) {
  std::atomic<int> first = 0, second = 0;
  on_two_ranks([&](Reduction& reduction) {
    const std::vector<Timing> timings =
        reduction.time({.warm_up = 2,
                        .rounds = 3,
                        .repetitions = 4,
                        .candidates = {[&] { ++first; }, [&] { ++second; }}});
    ASSERT_EQ(timings.size(), 2U);
    for (const Timing& timing : timings) {
      EXPECT_GE(timing.least, 0);
      EXPECT_LE(timing.least, timing.median);
    }
    EXPECT_FALSE(reduction.stops());
  });
  EXPECT_EQ(first, 2 * (2 + 3) * 4);
  EXPECT_EQ(second, 2 * (2 + 3) * 4);
}

TEST(Reduction, TellsAllRanksTheTimeOfTheSlowest) {
  constexpr std::chrono::milliseconds rest(2);
  std::vector<Timing> told[2];
  on_two_ranks([&](Reduction& reduction) {
    const auto work = [&] {
      if (reduction.first()) {
        std::this_thread::sleep_for(rest);
      }
    };
    told[reduction.first() ? 0 : 1] = reduction.time({.rounds = 3, .candidates = {work}});
  });
  for (const std::vector<Timing>& timings : told) {
    ASSERT_EQ(timings.size(), 1U);
    EXPECT_GE(timings[0].least, std::chrono::duration<double>(rest).count());
  }
  EXPECT_EQ(told[0][0].median, told[1][0].median);
}

TEST(Reduction, StopsOnAllRanksWhereOneIsAskedTo) {
  std::atomic<int> calls = 0;
  on_two_ranks(
      [&](Reduction& reduction) {
        EXPECT_FALSE(reduction.stops()) << "no rank has been asked yet";
        EXPECT_TRUE(reduction.time({.rounds = 1000, .candidates = {[&] { ++calls; }}}).empty());
        EXPECT_TRUE(reduction.stops());
      },
      nullptr, SIGTERM);
  EXPECT_EQ(calls, 2) << "each rank makes one call";
}

TEST(Reduction, AsksAllRanksBetweenReductions) {
  on_two_ranks(
      [](Reduction& reduction) {
        reduction.agree();
        EXPECT_TRUE(reduction.stops());
      },
      nullptr, SIGTERM);
  on_two_ranks([](Reduction& reduction) {
    reduction.agree();
    EXPECT_FALSE(reduction.stops());
  });
}

}  // namespace
}  // namespace cnn::bench
