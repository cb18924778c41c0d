#include "data/repeat.h"

#include <algorithm>
#include <gtest/gtest.h>
#include <memory>
#include <vector>

#include "runtime/error.h"
#include "tests/data/files.h"

namespace cnn::data {
namespace {

// Example i has the label 10 + i and an image of bytes 20 + i. `reads` counts all reads.
class OriginalOfRepeat final : public Dataset {
 public:
  OriginalOfRepeat(int& reads, bool broken) : reads_(reads), broken_(broken) {}

  std::int64_t size() const override { return 7; }
  ImageFormat format() const override { return {1, 2, 3, DataType::u8}; }
  int classes() const override { return 40; }
  void read(std::int64_t index, const Example& into) const override {
    ++reads_;
    check(!broken_, "the first example is broken");
    std::ranges::fill(into.image, static_cast<std::byte>(20 + index));
    *into.label = static_cast<std::int32_t>(10 + index);
  }
  bool may_shuffle() const override { return false; }
  Transform distortions(std::uint64_t seed) const override {
    return [seed](std::span<const std::byte>, std::span<std::byte> to, std::int64_t) {
      to.front() = static_cast<std::byte>(seed);
    };
  }

 private:
  int& reads_;
  bool broken_;
};

TEST(RepeatFirst, ReadsTheFirstExampleOnceAndGivesItForEveryIndex) {
  int reads = 0;
  const auto repeated = repeat_first(std::make_unique<OriginalOfRepeat>(reads, false));
  for (const std::int64_t index : {6, 0, 3}) {
    const ReadExample example = read_one(*repeated, index);
    EXPECT_EQ(example.image, std::vector<std::uint8_t>(6, 20));
    EXPECT_EQ(example.label, 10);
  }
  EXPECT_EQ(reads, 1);
}

TEST(RepeatFirst, LooksLikeTheDataSetOtherwise) {
  int reads = 0;
  const auto repeated = repeat_first(std::make_unique<OriginalOfRepeat>(reads, false));
  EXPECT_EQ(repeated->size(), 7);
  EXPECT_EQ(repeated->format(), (ImageFormat{1, 2, 3, DataType::u8}));
  EXPECT_EQ(repeated->classes(), 40);
  EXPECT_FALSE(repeated->may_shuffle());
  std::vector<std::byte> image(6);
  repeated->distortions(33)(image, image, 0);
  EXPECT_EQ(image.front(), std::byte{33});
}

TEST(RepeatFirst, FailsAtOnceWhereTheFirstExampleCannotBeRead) {
  int reads = 0;
  EXPECT_EQ(error_of([&] { repeat_first(std::make_unique<OriginalOfRepeat>(reads, true)); }),
            "the first example is broken");
}

}  // namespace
}  // namespace cnn::data
