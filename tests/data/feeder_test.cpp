#include "data/feeder.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <mutex>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "data/augment.h"
#include "runtime/error.h"
#include "tests/data/files.h"

namespace cnn::data {
namespace {

using testing::Each;
using testing::ElementsAre;
using testing::HasSubstr;

// Example i has label i and a 2 x 2 image of bytes i. If requested, one index throws.
class Counting final : public Dataset {
 public:
  explicit Counting(std::int64_t size, std::int64_t broken = -1) : size_(size), broken_(broken) {}

  std::int64_t size() const override { return size_; }
  ImageFormat format() const override { return {2, 2, 1, DataType::u8}; }
  int classes() const override { return 1000; }
  void read(std::int64_t index, const Example& into) const override {
    ++reads_;
    check(index != broken_, "example " + std::to_string(index) + " is broken");
    std::fill(into.image.begin(), into.image.end(), static_cast<std::byte>(index));
    *into.label = static_cast<std::int32_t>(index);
  }
  int reads() const { return reads_; }

 private:
  std::int64_t size_, broken_;
  mutable std::atomic<int> reads_ = 0;
};

std::vector<std::int32_t> labels_of(Feeder& feeder, int steps) {
  std::vector<std::int32_t> labels;
  for (int i = 0; i < steps; ++i) {
    const Batch& batch = feeder.next();
    labels.insert(labels.end(), batch.labels.begin(), batch.labels.end());
  }
  return labels;
}

std::vector<std::int32_t> labels_of(const Dataset& dataset, const FeederOptions& options,
                                    int steps) {
  Feeder feeder(dataset, options);
  return labels_of(feeder, steps);
}

TEST(Feeder, TellsWhetherABatchIsReady) {
  const Counting dataset(8);
  Feeder feeder(dataset, {.batch = 2, .buffers = 2});
  feeder.next();
  while (!feeder.has_next()) {
    std::this_thread::yield();
  }
  feeder.next();
  Feeder alone(dataset, {.batch = 2, .buffers = 1});
  alone.next();
  EXPECT_FALSE(alone.has_next()) << "the caller holds the only buffer";
  const Counting broken(8, 2);
  Feeder failing(broken, {.batch = 2, .buffers = 2, .order = Order::sequential});
  failing.next();
  EXPECT_THROW(failing.next(), Error);
  EXPECT_FALSE(failing.has_next()) << "only next() throws the error";
}

TEST(Feeder, ReadsInOrderAndWrapsWithinABatch) {
  const Counting dataset(5);
  Feeder feeder(dataset, {.batch = 3, .order = Order::sequential});
  EXPECT_THAT(labels_of(feeder, 3), ElementsAre(0, 1, 2, 3, 4, 0, 1, 2, 3));
}

TEST(Feeder, FillsImagesBesideTheirLabels) {
  const Counting dataset(7);
  Feeder feeder(dataset, {.batch = 4, .threads = 3});
  for (int step = 0; step < 10; ++step) {
    const Batch& batch = feeder.next();
    EXPECT_EQ(batch.step, step);
    ASSERT_EQ(batch.images.size(), 16U);
    for (std::size_t i = 0; i < 4; ++i) {
      EXPECT_THAT(batch.images.subspan(4 * i, 4), Each(static_cast<std::byte>(batch.labels[i])));
    }
  }
}

TEST(Feeder, ShufflesEveryEpochAnewAndMissesNothing) {
  const Counting dataset(10);
  const std::vector<std::int32_t> labels = labels_of(dataset, {.batch = 5, .seed = 1}, 4);
  const std::vector<std::int32_t> first(labels.begin(), labels.begin() + 10);
  const std::vector<std::int32_t> second(labels.begin() + 10, labels.end());
  EXPECT_EQ(std::set(first.begin(), first.end()).size(), 10U);
  EXPECT_EQ(std::set(second.begin(), second.end()).size(), 10U);
  EXPECT_NE(first, second);
  EXPECT_FALSE(std::is_sorted(first.begin(), first.end()));
}

TEST(Feeder, GivesTheSameBatchesWithAnyNumberOfThreadsAndBuffers) {
  const Counting dataset(1000);
  const FeederOptions one{.batch = 64, .threads = 1, .buffers = 1, .seed = 3};
  const FeederOptions many{.batch = 64, .threads = 7, .buffers = 5, .seed = 3};
  EXPECT_EQ(labels_of(dataset, one, 40), labels_of(dataset, many, 40));
}

TEST(Feeder, ResumesExactlyAtAGlobalStep) {
  const Counting dataset(100);
  FeederOptions options{.batch = 7, .threads = 2, .seed = 5};
  const std::vector<std::int32_t> whole = labels_of(dataset, options, 40);
  options.first_step = 25;
  const std::vector<std::int32_t> rest = labels_of(dataset, options, 15);
  EXPECT_TRUE(std::equal(rest.begin(), rest.end(), whole.begin() + std::ptrdiff_t{25} * 7));
  EXPECT_EQ(Feeder(dataset, options).next().step, 25);
}

TEST(Feeder, SharesOutAGlobalBatchAmongShards) {
  const Counting dataset(30);
  const std::vector<std::int32_t> whole = labels_of(dataset, {.batch = 6, .seed = 2}, 5);
  for (int shard = 0; shard < 3; ++shard) {
    const std::vector<std::int32_t> part =
        labels_of(dataset, {.batch = 2, .seed = 2, .shard = shard, .shards = 3}, 5);
    for (std::size_t step = 0; step < 5; ++step) {
      const std::size_t at = 6 * step + 2 * static_cast<std::size_t>(shard);
      EXPECT_EQ(part[2 * step], whole[at]);
      EXPECT_EQ(part[2 * step + 1], whole[at + 1]);
    }
  }
}

TEST(Feeder, TransformsByTheGlobalPositionOfAnExample) {
  const Counting dataset(3);
  const Transform position_only = [](std::span<const std::byte> from, std::span<std::byte> to,
                                     std::int64_t position) {
    to[0] = from[0];
    to[1] = static_cast<std::byte>(position);
  };
  Feeder feeder(dataset, {.batch = 2,
                          .order = Order::sequential,
                          .first_step = 4,
                          .shard = 1,
                          .shards = 2,
                          .transform = position_only});
  const Batch& batch = feeder.next();
  // Step 4 of the global batch of 4 starts at example 16; this shard has the second half.
  EXPECT_EQ(batch.images[1], std::byte{18});
  EXPECT_EQ(batch.images[5], std::byte{19});
  EXPECT_EQ(batch.images[4], std::byte{19 % 3});
}

TEST(Feeder, ReusesItsMemoryButNotTheBatchThatIsOut) {
  const Counting dataset(100);
  Feeder feeder(dataset, {.batch = 4, .threads = 2, .buffers = 3, .order = Order::sequential});
  std::set<const std::byte*> memory;
  for (int step = 0; step < 20; ++step) {
    const Batch& batch = feeder.next();
    memory.insert(batch.images.data());
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(batch.images.data()) % 64, 0U);
    std::this_thread::sleep_for(std::chrono::microseconds(200));  // the readers run ahead meanwhile
    EXPECT_EQ(batch.labels[0], 4 * step % 100);
  }
  EXPECT_EQ(memory.size(), 3U);
}

// A large and fast data set that records the examples it is told to read ahead.
class OnDisk final : public Dataset {
 public:
  std::int64_t size() const override { return 100'000; }
  ImageFormat format() const override { return {1, 1, 1, DataType::u8}; }
  int classes() const override { return 10; }
  void read(std::int64_t /*index*/, const Example& into) const override { *into.label = 0; }
  bool likes_runs() const override { return true; }
  void read_ahead(std::int64_t first, std::int64_t count) const override {
    const std::lock_guard lock(mutex_);
    for (std::int64_t i = 0; i < count; ++i) {
      ahead_.push_back(first + i);
    }
  }
  std::vector<std::int64_t> ahead() const {
    const std::lock_guard lock(mutex_);
    return ahead_;
  }
  // Waits until `examples` examples were requested, and a little longer to notice any excess.
  void wait_for(std::size_t examples) const {
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(60);
    while (ahead().size() < examples && std::chrono::steady_clock::now() < deadline) {
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }

 private:
  mutable std::mutex mutex_;
  mutable std::vector<std::int64_t> ahead_;
};

TEST(Feeder, HasOneWindowOfALargeSetReadAhead) {
  const OnDisk dataset;
  Feeder feeder(dataset, {.batch = 4, .buffers = 2});
  constexpr std::size_t window = WindowedPermutation::window;
  dataset.wait_for(window);
  EXPECT_GE(dataset.ahead().size(), window);
  EXPECT_LE(dataset.ahead().size(), window + 8 + WindowedPermutation::run);
}

TEST(Feeder, HasOnlyItsOwnRecordsReadAheadWhereRanksShareTheRuns) {
  const OnDisk dataset;
  Feeder feeder(dataset, {.batch = 4, .buffers = 2, .seed = 5, .shard = 1, .shards = 3});
  dataset.wait_for(256);
  const std::vector<std::int64_t> ahead = dataset.ahead();
  ASSERT_GE(ahead.size(), 256U);
  EXPECT_LE(ahead.size(), 256U + 8);
  const Sequence order(dataset.size(), Order::shuffled, 5, true);
  for (std::size_t i = 0; i < 256; ++i) {
    const auto example = static_cast<std::int64_t>(i);
    EXPECT_EQ(ahead[i], order[(example / 4 * 3 + 1) * 4 + example % 4]);
  }
}

TEST(Feeder, ShufflesALargeSetInWindowsAndMissesNothing) {
  const Sequence order(40'000, Order::shuffled, 3, true);
  ASSERT_TRUE(order.has_windows());
  std::set<std::int64_t> seen;
  for (std::int64_t position = 40'000; position < 80'000; ++position) {
    seen.insert(order[position]);
  }
  EXPECT_EQ(seen.size(), 40'000U);
  EXPECT_FALSE(Sequence(1000, Order::shuffled, 3, true).has_windows());
  EXPECT_FALSE(Sequence(40'000, Order::sequential, 3, true).has_windows());
  EXPECT_FALSE(Sequence(40'000, Order::shuffled, 3).has_windows());
}

TEST(Feeder, ReadsAheadOnlyAsFarAsItsBuffers) {
  const Counting dataset(100);
  Feeder feeder(dataset, {.batch = 4, .threads = 2, .buffers = 3});
  feeder.next();
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(5);
  while (dataset.reads() < 12 && std::chrono::steady_clock::now() < deadline) {
    std::this_thread::yield();
  }
  std::this_thread::sleep_for(std::chrono::milliseconds(5));
  EXPECT_EQ(dataset.reads(), 12);
}

class Slow final : public Dataset {
 public:
  std::int64_t size() const override { return 10; }
  ImageFormat format() const override { return {1, 1, 1, DataType::u8}; }
  int classes() const override { return 10; }
  void read(std::int64_t /*index*/, const Example& into) const override {
    std::this_thread::sleep_for(std::chrono::milliseconds(30));
    *into.label = 0;
  }
};

TEST(Feeder, SaysHowLongTheCallerWaited) {
  const Slow dataset;
  Feeder feeder(dataset, {.batch = 1});
  EXPECT_GT(feeder.next().seconds_waited, 0.005);
  const Counting fast(10);
  Feeder other(fast, {.batch = 1});
  double least = 1;
  for (int i = 0; i < 50; ++i) {  // repeated, because other jobs use the processors too
    least = std::min(least, other.next().seconds_waited);
  }
  EXPECT_LT(least, 0.005) << "a batch is ready already";
}

TEST(Feeder, ThrowsAReadersErrorAtTheBatchItBelongsTo) {
  const Counting dataset(100, 17);
  Feeder feeder(dataset, {.batch = 4, .threads = 3, .buffers = 8, .order = Order::sequential});
  EXPECT_EQ(labels_of(feeder, 4).size(), 16U);
  EXPECT_THAT(error_of([&] { feeder.next(); }), HasSubstr("example 17 is broken"));
  EXPECT_THAT(error_of([&] { feeder.next(); }), HasSubstr("example 17 is broken"));
}

TEST(Feeder, StopsWhileItsThreadsReadOrWait) {
  const Slow slow;
  const Counting fast(10);
  for (int i = 0; i < 6; ++i) {
    const Feeder reading(slow, {.batch = 1, .threads = 2});
    Feeder waiting(fast, {.batch = 2, .threads = 3});
    waiting.next();
  }
  SUCCEED();  // otherwise the test hangs
}

TEST(Feeder, RefusesOptionsThatMakeNoSense) {
  const Counting dataset(10);
  const auto refuse = [&](const FeederOptions& options) {
    return error_of([&] { Feeder(dataset, options).next(); });
  };
  EXPECT_THAT(refuse({.batch = 0}), HasSubstr("one example"));
  EXPECT_THAT(refuse({.threads = 0}), HasSubstr("one thread"));
  EXPECT_THAT(refuse({.buffers = 0}), HasSubstr("one buffer"));
  EXPECT_THAT(refuse({.first_step = -1}), HasSubstr("negative"));
  EXPECT_THAT(refuse({.shard = 2, .shards = 2}), HasSubstr("shard does not exist"));
  EXPECT_THAT(refuse({.batch = 4, .first_step = std::int64_t{1} << 61}), HasSubstr("too large"));
  EXPECT_THAT(refuse({.batch = std::int64_t{1} << 62}), HasSubstr("larger than memory"));
  EXPECT_THAT(refuse({.batch = std::int64_t{1} << 30, .buffers = 1'000'000}),
              HasSubstr("a smaller --batch_size or --multi_device_iterator_max_buffer_size"));
  EXPECT_THAT(refuse({.batch = std::int64_t{1} << 30,
                      .buffers = 1'000'000,
                      .batch_flag = "--eval_batch_size"}),
              HasSubstr("a smaller --eval_batch_size or "));
}

}  // namespace
}  // namespace cnn::data
