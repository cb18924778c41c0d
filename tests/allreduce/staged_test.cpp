#include "allreduce/staged.h"

#include <array>
#include <atomic>
#include <cstring>
#include <deque>
#include <gtest/gtest.h>
#include <numeric>
#include <thread>
#include <utility>

#include "runtime/error.h"
#include "tests/support/error_of.h"

namespace cnn::allreduce {
namespace {

// A stream that runs work at once and, like other streams, keeps the first error for synchronize().
class PromptStream final : public Stream {
 public:
  void copy(std::byte* to, const std::byte* from, std::size_t bytes) override {
    std::memcpy(to, from, bytes);
  }
  void host(std::function<void()> work) override {
    try {
      work();
    } catch (...) {
      error_ = std::current_exception();
    }
  }
  void record(Event& /*event*/) override {}
  void wait(Event& /*event*/) override {}
  void synchronize() override {
    if (error_) {
      std::rethrow_exception(std::exchange(error_, nullptr));
    }
  }

 private:
  std::exception_ptr error_;
};

// The communicator of one of three ranks that contribute equal numbers.
class ThreeEqualRanks final : public Communicator {
 public:
  int rank() const override { return 0; }
  int ranks() const override { return 3; }
  void all_reduce(std::size_t bucket, std::span<const std::span<float>> pieces,
                  float factor) override {
    check(!fails, "a rank is lost");
    order.push_back(bucket);
    for (const std::span<float>& piece : pieces) {
      for (float& value : piece) {
        value *= 3 * factor;
      }
    }
  }
  void release(std::size_t bucket) override { released.push_back(bucket); }
  void reserve(std::size_t elements) override { reserved.push_back(elements); }
  std::vector<std::size_t> order, released, reserved;
  bool fails = false;
};

void wait_here(Stream& stream, std::uint32_t* flag) {
  stream.host([flag] {
    const std::atomic_ref done(flag[staging_done]), failed(flag[staging_failed]);
    while (done.load() == 0 && failed.load() == 0) {
      std::this_thread::yield();
    }
    done.store(0);
  });
}

class Staged : public testing::Test {
 protected:
  Staged()
      : staged(host, {.allocate_staging =
                          [this](std::size_t elements) {
                            rooms.push_back(std::vector<float>(elements));
                            return std::span<float>(rooms.back());
                          },
                      .allocate_flag =
                          [] {
                            auto* const words = new std::array<std::uint32_t, 16>{};
                            return Buffer(reinterpret_cast<std::byte*>(words), sizeof(*words),
                                          [words](std::byte*) { delete words; });
                          },
                      .wait_for = wait_here}) {}

  ThreeEqualRanks host;
  std::deque<std::vector<float>> rooms;
  PromptStream stream;
  StagedCommunicator staged;
};

TEST_F(Staged, GivesTheSumsOfTheHostsCommunicatorStepAfterStep) {
  std::vector<float> a(5), b(3), c(4);
  const std::array<std::span<float>, 2> first{a, b};
  const std::array<std::span<float>, 1> second{c};
  staged.prepare(0, 8);
  staged.prepare(1, 4);
  staged.prepare(0, 8);  // another program of the same rank prepares it again
  EXPECT_EQ(rooms.size(), 2U);
  for (int step = 0; step < 3; ++step) {
    std::iota(a.begin(), a.end(), 1.0F);
    std::iota(b.begin(), b.end(), 6.0F);
    std::iota(c.begin(), c.end(), 1.0F);
    staged.all_reduce(stream, 0, first, 1);
    staged.all_reduce(stream, 1, second, 0.5F);
    stream.synchronize();
    EXPECT_EQ(a, (std::vector<float>{3, 6, 9, 12, 15}));
    EXPECT_EQ(b, (std::vector<float>{18, 21, 24}));
    EXPECT_EQ(c, (std::vector<float>{1.5, 3, 4.5, 6}));
  }
  EXPECT_EQ(host.order, (std::vector<std::size_t>{0, 1, 0, 1, 0, 1}));
}

TEST_F(Staged, ReusesTheMemoryOfReleasedBuckets) {
  std::vector<float> large(8), small(4);
  const std::span<float> of_large(large), of_small(small);
  for (std::size_t bucket = 0; bucket < 6; bucket += 2) {
    large.assign(8, 1);
    small.assign(4, 2);
    staged.prepare(bucket, 8);
    staged.all_reduce(stream, bucket, {&of_large, 1}, 1);
    stream.synchronize();
    staged.release(bucket);
    staged.prepare(bucket + 1, 4);
    staged.all_reduce(stream, bucket + 1, {&of_small, 1}, 1);
    stream.synchronize();
    staged.release(bucket + 1);
    EXPECT_EQ(large, std::vector<float>(8, 3));
    EXPECT_EQ(small, std::vector<float>(4, 6));
  }
  EXPECT_EQ(rooms.size(), 1U);
  EXPECT_EQ(host.released, (std::vector<std::size_t>{0, 1, 2, 3, 4, 5}));
  staged.release(100);  // which was never prepared
  staged.prepare(6, 9);
  EXPECT_EQ(rooms.size(), 2U) << "no released buffer is large enough";
}

TEST_F(Staged, TakesTheMemoryOfTheLargestBucketOnce) {
  staged.reserve(8);
  staged.reserve(4);
  EXPECT_EQ(host.reserved, (std::vector<std::size_t>{8, 4}));
  for (std::size_t bucket = 0; bucket < 4; ++bucket) {
    staged.prepare(bucket, 2 * (bucket + 1));
    staged.release(bucket);
  }
  EXPECT_EQ(rooms.size(), 1U);
}

TEST_F(Staged, EndsTheWaitOfTheDeviceAndThrowsWhenTheHostHasFailed) {
  std::vector<float> a(4);
  const std::array<std::span<float>, 1> pieces{a};
  staged.prepare(0, 4);
  staged.prepare(1, 4);
  host.fails = true;
  staged.all_reduce(stream, 0, pieces, 1);
  staged.all_reduce(stream, 1, pieces, 1);  // the second sum is skipped and waits for no rank
  EXPECT_EQ(tests::error_of([&] { stream.synchronize(); }), "a rank is lost");
  EXPECT_TRUE(host.order.empty());
}

TEST_F(Staged, RefusesABucketOfAnotherSize) {
  staged.prepare(0, 8);
  EXPECT_EQ(tests::error_of([&] { staged.prepare(0, 9); }),
            "bucket 0 of an exchange has changed its size");
}

}  // namespace
}  // namespace cnn::allreduce
