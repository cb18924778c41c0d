#include "runtime/tensor_hash.h"

#include <cstring>
#include <functional>
#include <gtest/gtest.h>
#include <random>
#include <set>
#include <vector>

namespace cnn {
namespace {

// Calls visit(flat logical index, n, c, position in the plane) for each element of an image.
void for_each_element(
    const Shape& shape,
    const std::function<void(std::int64_t, std::int64_t, std::int64_t, std::int64_t)>& visit) {
  const std::int64_t plane = shape.elements() / (shape[0] * shape[1]);
  std::int64_t index = 0;
  for (std::int64_t n = 0; n < shape[0]; ++n) {
    for (std::int64_t c = 0; c < shape[1]; ++c) {
      for (std::int64_t p = 0; p < plane; ++p) {
        visit(index++, n, c, p);
      }
    }
  }
}

// Returns the offset of an element of an image, counted in elements.
std::int64_t place_in(const TensorDesc& desc, std::int64_t n, std::int64_t c, std::int64_t p) {
  const Shape& shape = desc.shape;
  const std::int64_t plane = shape.elements() / (shape[0] * shape[1]);
  switch (desc.layout) {
    case Layout::nhwc:
      return (n * plane + p) * pitch_of(desc) + c;
    case Layout::nchw16c:
      return ((n * ((shape[1] + 15) / 16) + c / 16) * plane + p) * 16 + c % 16;
    default:
      return (n * shape[1] + c) * plane + p;
  }
}

// A tensor with these logical values and random bytes in all gaps.
template <class Word>
struct LaidOutTensor {
  LaidOutTensor(TensorDesc d, const std::vector<Word>& values, unsigned noise)
      : desc(std::move(d)) {
    std::mt19937 random(noise);
    words.resize(desc.extent() / sizeof(Word));
    for (Word& word : words) {
      word = static_cast<Word>(random());
    }
    for_each_element(desc.shape, [&](auto index, auto n, auto c, auto p) {
      words[static_cast<std::size_t>(place_in(desc, n, c, p))] =
          values[static_cast<std::size_t>(index)];
    });
  }
  TensorView view() { return {desc, reinterpret_cast<std::byte*>(words.data())}; }

  TensorDesc desc;
  std::vector<Word> words;
};

template <class Word>
std::vector<Word> random_values(const Shape& shape, unsigned seed) {
  std::mt19937 random(seed);
  std::vector<Word> values(static_cast<std::size_t>(shape.elements()));
  for (Word& value : values) {
    value = static_cast<Word>(random());
  }
  return values;
}

HashKeys keys_for(const Shape& shape) {
  HashKeys keys;
  keys.prepare(shape);
  return keys;
}

std::uint64_t hash_of_row_major(const Shape& shape, std::vector<std::uint32_t> values) {
  return hash_of({{.shape = shape}, reinterpret_cast<std::byte*>(values.data())}, keys_for(shape));
}

template <class Word>
void expect_one_hash_in_all_layouts(const Shape& shape, DataType type) {
  const auto values = random_values<Word>(shape, 1);
  const HashKeys keys = keys_for(shape);
  LaidOutTensor<Word> plain({.shape = shape, .type = type}, values, 2);
  const std::uint64_t expected = hash_of(plain.view(), keys);
  const std::vector<TensorDesc> descs{
      {.shape = shape, .type = type, .layout = Layout::nhwc},
      {.shape = shape, .type = type, .layout = Layout::nhwc, .pitch = shape[1] + 5},
      {.shape = shape, .type = type, .layout = Layout::nchw16c}};
  for (const TensorDesc& desc : descs) {
    for (const unsigned noise : {3U, 4U}) {
      LaidOutTensor<Word> other(desc, values, noise);
      EXPECT_EQ(hash_of(other.view(), keys), expected) << to_string(desc);
    }
  }
}

TEST(TensorHash, IsTheSameInAllLayoutsWhateverLiesInPaddingAndGaps) {
  for (const Shape& shape : {Shape{2, 3, 4, 5}, Shape{1, 16, 3, 3}, Shape{3, 37, 7, 2},
                             Shape{2, 40, 1, 1}, Shape{1, 1, 1, 1}}) {
    expect_one_hash_in_all_layouts<std::uint32_t>(shape, DataType::f32);
    expect_one_hash_in_all_layouts<std::uint16_t>(shape, DataType::bf16);
    expect_one_hash_in_all_layouts<std::uint8_t>(shape, DataType::u8);
  }
}

TEST(TensorHash, LeavesOutThePaddingOfAMatrixInBlocksOfChannels) {
  const Shape shape{3, 20};
  const auto values = random_values<std::uint32_t>(shape, 1);
  for (const std::uint32_t padding : {0U, 7U}) {
    std::vector<std::uint32_t> padded(3 * 32, padding);
    for (std::size_t row = 0; row < 3; ++row) {
      std::copy_n(values.begin() + static_cast<std::ptrdiff_t>(row * 20), 20,
                  padded.begin() + static_cast<std::ptrdiff_t>(row * 32));
    }
    const TensorView view{{.shape = shape, .layout = Layout::nchw16c},
                          reinterpret_cast<std::byte*>(padded.data())};
    EXPECT_EQ(hash_of(view, keys_for(shape)), hash_of_row_major(shape, values));
  }
}

TEST(TensorHash, IsTheSumOfAnyPartsInAnyOrder) {
  const Shape shape{3, 37, 7, 2};
  const auto values = random_values<std::uint32_t>(shape, 5);
  const HashKeys keys = keys_for(shape);
  for (const Layout layout : {Layout::nchw, Layout::nhwc, Layout::nchw16c}) {
    LaidOutTensor<std::uint32_t> laid({.shape = shape, .layout = layout}, values, 6);
    const std::int64_t parts = hash_parts(laid.desc);
    std::uint64_t sum = 0;
    for (std::int64_t last = parts; last > 0; last -= std::min<std::int64_t>(last, 4)) {
      sum += partial_hash(laid.view(), keys, std::max<std::int64_t>(0, last - 4), last);
    }
    EXPECT_EQ(finish_hash(laid.desc, sum), hash_of(laid.view(), keys)) << name_of(layout);
  }
}

TEST(TensorHash, ChangesWithEveryBitOfEveryElement) {
  const Shape shape{2, 3, 2, 2};
  const auto values = random_values<std::uint32_t>(shape, 7);
  std::set<std::uint64_t> seen{hash_of_row_major(shape, values)};
  for (std::size_t i = 0; i < values.size(); ++i) {
    for (unsigned bit = 0; bit < 32; ++bit) {
      auto changed = values;
      changed[i] ^= 1U << bit;
      EXPECT_TRUE(seen.insert(hash_of_row_major(shape, changed)).second) << i << " " << bit;
    }
  }
}

TEST(TensorHash, ChangesWhereTwoElementsChangePlaces) {
  const Shape shape{2, 3, 4, 4};
  const auto values = random_values<std::uint32_t>(shape, 8);
  std::set<std::uint64_t> seen{hash_of_row_major(shape, values)};
  for (std::size_t i = 0; i < values.size(); ++i) {
    for (std::size_t j = 0; j < i; ++j) {
      auto changed = values;
      std::swap(changed[i], changed[j]);
      EXPECT_TRUE(seen.insert(hash_of_row_major(shape, changed)).second) << i << " " << j;
    }
  }
}

TEST(TensorHash, TellsSizesAndTypesOfZerosApart) {
  std::vector<std::uint32_t> zeros(64);
  std::set<std::uint64_t> seen;
  const auto add = [&](const TensorDesc& desc) {
    const TensorView view{desc, reinterpret_cast<std::byte*>(zeros.data())};
    EXPECT_TRUE(seen.insert(hash_of(view, keys_for(desc.shape))).second) << to_string(desc);
  };
  add({.shape = {}});
  add({.shape = {0}});
  add({.shape = {2}});
  add({.shape = {3}});
  add({.shape = {2}, .type = DataType::i32});
  add({.shape = {2}, .type = DataType::bf16});
}

TEST(TensorHash, ReadsLongVectorsToTheirEnd) {
  const Shape shape{9000};
  auto values = random_values<std::uint32_t>(shape, 9);
  const std::uint64_t before = hash_of_row_major(shape, values);
  values.back() ^= 1U;
  EXPECT_NE(hash_of_row_major(shape, values), before);
}

TEST(TensorHash, DependsOnTheOrderOfWhatIsCombined) {
  EXPECT_NE(combine_hash(combine_hash(0, 1), 2), combine_hash(combine_hash(0, 2), 1));
}

}  // namespace
}  // namespace cnn
