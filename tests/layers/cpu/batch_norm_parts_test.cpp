#include "layers/cpu/batch_norm_parts.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <gtest/gtest.h>
#include <vector>

namespace cnn::layers::cpu {
namespace {

using ImageRun = Run;  // testing::Test declares a Run too

TensorDesc image(Shape shape, Layout layout) { return {.shape = shape, .layout = layout}; }

const std::vector<TensorDesc>& image_descs() {
  static const std::vector<TensorDesc> all{
      image({2, 21, 3, 5}, Layout::nhwc), image({2, 21, 3, 5}, Layout::nchw16c),
      image({3, 40, 67, 33}, Layout::nchw16c), image({4, 64, 57, 31}, Layout::nhwc)};
  return all;
}

TEST(Chunks, HaveAtLeastSixtyFourPixelsAndAreAtMostSixtyFour) {
  EXPECT_EQ(Chunks(image({1, 1024, 8, 8}, Layout::nhwc)).per_group, 1);
  EXPECT_EQ(Chunks(image({1, 1024, 8, 9}, Layout::nhwc)).per_group, 2);
  EXPECT_EQ(Chunks(image({64, 16, 112, 112}, Layout::nchw16c)).per_group, 64);
}

TEST(Chunks, CoverEveryElementOnce) {
  for (const TensorDesc& desc : image_descs()) {
    const Chunks chunks(desc);
    std::vector<int> visits(static_cast<std::size_t>(stored_elements(desc)));
    for (std::int64_t chunk = 0; chunk < chunks.per_group; ++chunk) {
      std::int64_t pixels = 0;
      chunks.each_run(chunk, 0, chunks.blocks.groups, [&](const ImageRun& run) {
        EXPECT_EQ(run.item, run.group * chunks.per_group + chunk);
        EXPECT_EQ(run.before, run.group == 0 ? pixels : run.before);
        pixels += run.group == chunks.blocks.groups - 1 ? run.rows : 0;
        for (std::int64_t i = 0; i < run.rows * chunks.blocks.columns; ++i) {
          ++visits[static_cast<std::size_t>(run.offset + i)];
        }
      });
      EXPECT_EQ(pixels, chunks.first(chunk + 1) - chunks.first(chunk));
    }
    for (const int count : visits) {
      ASSERT_EQ(count, 1) << to_string(desc);
    }
  }
}

TEST(Chunks, CoverTheGroupsAskedForInParallelInBothDirections) {
  for (const bool backwards : {false, true}) {
    const Chunks chunks(image_descs()[2]);
    ASSERT_EQ(chunks.blocks.groups, 3);
    std::vector<std::atomic<std::int64_t>> rows(3);
    chunks.each_run_in_parallel({.begin = 1, .end = 3}, backwards, [&](const ImageRun& run) {
      rows[static_cast<std::size_t>(run.group)] += run.rows;
    });
    EXPECT_EQ(rows[0], 0);
    EXPECT_EQ(rows[1], chunks.blocks.pixels());
    EXPECT_EQ(rows[2], chunks.blocks.pixels());
  }
}

// A channel's second pass needs the result that `between` computes from the whole first pass.
TEST(TwoPasses, FinishAGroupsFirstPassBeforeBetweenAndThatBeforeTheSecond) {
  for (const TensorDesc& desc : image_descs()) {
    const Chunks chunks(desc);
    const auto groups = static_cast<std::size_t>(chunks.blocks.groups);
    std::vector<std::atomic<std::int64_t>> first(groups), between(groups), second(groups);
    std::atomic<int> early = 0;
    const auto place = [](std::int64_t group) { return static_cast<std::size_t>(group); };
    two_passes(
        chunks, 1, [&](const ImageRun& run) { first[place(run.group)] += run.rows; },
        [&](const Unit& unit) {
          early += first[place(unit.group)] != chunks.blocks.pixels() ? 1 : 0;
          between[place(unit.group)] += unit.columns;
        },
        [&](const ImageRun& run) {
          early += between[place(run.group)] != chunks.blocks.columns ? 1 : 0;
          second[place(run.group)] += run.rows;
        });
    EXPECT_EQ(early, 0) << to_string(desc);
    for (std::size_t group = 0; group < groups; ++group) {
      EXPECT_EQ(second[group], chunks.blocks.pixels()) << to_string(desc);
    }
  }
}

TEST(EachUnit, DividesTheChannelsOfAGroupBySixteen) {
  std::vector<std::int64_t> columns;
  each_unit(blocks_of(image({1, 37, 1, 1}, Layout::nhwc)), 0,
            [&](const Unit& unit) { columns.push_back(unit.columns); });
  EXPECT_EQ(columns, (std::vector<std::int64_t>{16, 16, 5}));
}

struct StoredFactors {
  std::vector<std::byte> bytes{std::size_t{4096}};
  BumpAllocator allocator{bytes};
  Factors factors{allocator, 32};
};

TEST(Factors, NormaliseToADoublesPrecision) {
  const StoredFactors stored;
  const double mean = 1234.56789, variance = 0.3, gamma = 1.7, beta = -0.4, epsilon = 1e-5;
  stored.factors.set(3, {.mean = mean, .variance = variance}, gamma, beta, epsilon);
  const double x = 1235;
  const auto in_double = [&](const float* values) { return static_cast<double>(values[3]); };
  const Factors& f = stored.factors;
  const double y =
      (x - in_double(f.mean)) * (in_double(f.scale) + in_double(f.scale_rest)) + in_double(f.shift);
  const double exact = (x - mean) / std::sqrt(variance + epsilon) * gamma + beta;
  // A mean rounded to f32 has an error of up to 6e-5, which the scale multiplies by 3.
  EXPECT_NEAR(y, exact, 1e-6);
}

TEST(Factors, TakeOneForAMissingGammaAndClearThePadding) {
  const StoredFactors stored;
  const Factors& f = stored.factors;
  for (float* const vector : {f.mean, f.scale, f.scale_rest, f.shift}) {
    std::fill(vector, vector + 32, 7.0F);
  }
  const std::vector<float> beta(20, 2), mean(20, 0.5F), variance(20, 4);
  f.set({.gamma = nullptr, .beta = beta.data(), .mean = mean.data(), .variance = variance.data()},
        0, 16, 4, 16);
  EXPECT_EQ(f.scale[15], 7) << "factors outside the request stay unchanged";
  EXPECT_EQ(f.mean[16], 0.5F);
  EXPECT_EQ(f.scale[19], 0.5F);
  EXPECT_EQ(f.shift[19], 2);
  for (const float* const vector : {f.mean, f.scale, f.scale_rest, f.shift}) {
    EXPECT_EQ(vector[20], 0);
    EXPECT_EQ(vector[31], 0);
  }
}

TEST(RealChannels, AreThoseWithoutPadding) {
  const TensorDesc desc = image({1, 21, 2, 2}, Layout::nchw16c);
  EXPECT_EQ(real_channels(0, 16, desc), 16);
  EXPECT_EQ(real_channels(16, 16, desc), 5);
  EXPECT_EQ(real_channels(32, 16, desc), 0);
}

// Byte b of a pixel holds the bits of channels 8 b to 8 b + 7. An image of 40 channels has five
// bytes per pixel.
TEST(GateBitsOf, FindTheBytesOfARunInBothKindsOfMask) {
  // A pixel's index, bytes per pixel, pixels per image.
  constexpr std::int64_t seventh = 7, masked = 5, pixels = 6;
  std::vector<std::byte> bytes(std::size_t{2} * 5 * 6);
  auto* const data = reinterpret_cast<std::uint8_t*>(bytes.data());
  TensorView mask{.desc = {.shape = {2, 5, 2, 3}, .type = DataType::u8, .layout = Layout::nhwc},
                  .data = bytes.data()};
  const Blocks last = blocks_of(image({2, 40, 2, 3}, Layout::nhwc));
  const GateBits of_last = gate_bits_of(mask, last, {.offset = seventh * 40, .rows = 2});
  EXPECT_EQ(of_last.data, data + seventh * masked);
  EXPECT_EQ(of_last.row, 5);
  EXPECT_EQ(of_last.byte, 1);
  EXPECT_EQ(of_last.bytes, 5);
  mask.desc.layout = Layout::nchw;
  const Blocks blocked = blocks_of(image({2, 40, 2, 3}, Layout::nchw16c));
  // The run begins at pixel 4 of group 2 (channels 32 to 47) of image 1. Only
  // one of the group's two bytes exists.
  const GateBits of_group = gate_bits_of(
      mask, blocked, {.group = 2, .offset = ((1 * 3 + 2) * pixels + 4) * 16, .rows = 2});
  EXPECT_EQ(of_group.data, data + (1 * masked + 4) * pixels + 4);
  EXPECT_EQ(of_group.row, 1);
  EXPECT_EQ(of_group.byte, 6);
  EXPECT_EQ(of_group.bytes, 1);
}

TEST(InverseDeviation, AddsEpsilonToTheVariance) {
  EXPECT_DOUBLE_EQ(inverse_deviation(3, 1), 0.5);
  EXPECT_DOUBLE_EQ(inverse_deviation(0, 1e-4), 100);
}

}  // namespace
}  // namespace cnn::layers::cpu
