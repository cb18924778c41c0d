#include <algorithm>
#include <atomic>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <memory>
#include <thread>

#include "data/imagenet/source.h"
#include "runtime/error.h"
#include "tests/data/files.h"

namespace cnn::data {
namespace {

using testing::AllOf;
using testing::HasSubstr;

struct OriginalReads {
  std::atomic<int> reads = 0;
  std::atomic<bool> fails = false;
};

// A source of four images. Image i has i + 1 bytes of value i and the label 100 + i.
class OriginalImages final : public ImageSource {
 public:
  explicit OriginalImages(OriginalReads& reads, std::uint64_t bytes = 10)
      : reads_(reads), bytes_(bytes) {}

  std::int64_t size() const override { return 4; }
  std::span<const std::byte> read(std::int64_t index,
                                  std::vector<std::byte>& buffer) const override {
    ++reads_.reads;
    check(!reads_.fails, "the disk is gone");
    buffer.assign(64, std::byte{0xEE});  // a buffer may be longer than its image
    std::fill_n(buffer.begin(), index + 1, static_cast<std::byte>(index));
    return std::span(buffer).first(static_cast<std::size_t>(index) + 1);
  }
  ImageExample parse(std::int64_t index, std::span<const std::byte> bytes) const override {
    return {.encoded = bytes, .label = 100 + index, .boxes = {}};
  }
  std::string where(std::int64_t index) const override { return "image " + std::to_string(index); }
  std::uint64_t bytes() const override { return bytes_; }
  std::vector<std::string> notices() const override { return {"a notice"}; }

 private:
  OriginalReads& reads_;
  std::uint64_t bytes_;
};

std::vector<std::byte> image_read(const ImageSource& source, std::int64_t index) {
  std::vector<std::byte> buffer;
  const std::span<const std::byte> bytes = source.read(index, buffer);
  return {bytes.begin(), bytes.end()};
}

std::vector<std::byte> original_image(std::int64_t index) {
  return std::vector<std::byte>(static_cast<std::size_t>(index) + 1, static_cast<std::byte>(index));
}

TEST(CachedImages, AreReadOnceEach) {
  OriginalReads reads;
  const auto source = cached(std::make_unique<OriginalImages>(reads));
  EXPECT_EQ(reads.reads, 0);
  for (int round = 0; round < 3; ++round) {
    for (const std::int64_t index : {2, 0, 3}) {
      EXPECT_EQ(image_read(*source, index), original_image(index));
    }
  }
  EXPECT_EQ(reads.reads, 3);
}

TEST(CachedImages, AreReadAgainAfterAFailure) {
  OriginalReads reads;
  const auto source = cached(std::make_unique<OriginalImages>(reads));
  reads.fails = true;
  EXPECT_EQ(error_of([&] { image_read(*source, 1); }), "the disk is gone");
  reads.fails = false;
  EXPECT_EQ(image_read(*source, 1), original_image(1));
  reads.fails = true;
  EXPECT_EQ(image_read(*source, 1), original_image(1));
}

TEST(CachedImages, StayInPlaceWhileOthersAreReadByManyThreads) {
  OriginalReads reads;
  const auto source = cached(std::make_unique<OriginalImages>(reads));
  std::vector<std::byte> buffer;
  const std::span<const std::byte> held = source->read(3, buffer);
  std::atomic<int> wrong = 0;
  std::vector<std::thread> threads;
  threads.reserve(4);
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&] {
      for (std::int64_t i = 0; i < 200; ++i) {
        wrong += image_read(*source, i % 4) == original_image(i % 4) ? 0 : 1;
      }
    });
  }
  for (std::thread& thread : threads) {
    thread.join();
  }
  EXPECT_EQ(wrong, 0);
  EXPECT_TRUE(std::ranges::equal(held, original_image(3)));
}

TEST(CachedImages, AreLabelledAndNamedAsBefore) {
  OriginalReads reads;
  const auto source = cached(std::make_unique<OriginalImages>(reads));
  EXPECT_EQ(source->size(), 4);
  EXPECT_EQ(source->parse(2, {}).label, 102);
  EXPECT_EQ(source->where(2), "image 2");
  EXPECT_EQ(source->bytes(), 10U);
  EXPECT_THAT(source->notices(), testing::ElementsAre("a notice"));
}

TEST(CachedImages, AreRefusedWhereTheMachineHasNotTheMemory) {
  OriginalReads reads;
  EXPECT_THAT(
      error_of([&] { cached(std::make_unique<OriginalImages>(reads, std::uint64_t{1} << 60U)); }),
      AllOf(HasSubstr("--datasets_use_caching"), HasSubstr("1099511627776 MiB of records"),
            HasSubstr("leave it out")));
}

TEST(RepeatedImages, AreTheFirstOneReadOnce) {
  OriginalReads reads;
  const auto source = repeated(std::make_unique<OriginalImages>(reads));
  for (const std::int64_t index : {3, 0, 1}) {
    const std::vector<std::byte> bytes = image_read(*source, index);
    EXPECT_EQ(bytes, original_image(0));
    EXPECT_EQ(source->parse(index, bytes).label, 100);
    EXPECT_EQ(source->where(index), "image 0");
  }
  EXPECT_EQ(reads.reads, 1);
  EXPECT_EQ(source->size(), 4) << "the length of an epoch is unchanged";
}

}  // namespace
}  // namespace cnn::data
