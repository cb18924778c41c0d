#include "layers/cpu/own_kernel.h"

#include <atomic>
#include <cstdint>
#include <gtest/gtest.h>
#include <vector>

#include "runtime/error.h"

namespace cnn::layers::cpu {
namespace {

constexpr std::int64_t images = 2, channels = 21, height = 3, width = 5;

TensorDesc image(Layout layout, DataType type = DataType::f32) {
  return {.shape = {images, channels, height, width}, .type = type, .layout = layout};
}

TEST(BlocksOf, AnNhwcImageIsOneMatrix) {
  const Blocks blocks = blocks_of(image(Layout::nhwc));
  EXPECT_EQ(blocks.segments, 1);
  EXPECT_EQ(blocks.groups, 1);
  EXPECT_EQ(blocks.rows, images * height * width);
  EXPECT_EQ(blocks.columns, channels);
  EXPECT_EQ(blocks.elements(), images * channels * height * width);
}

TEST(BlocksOf, ABlockedImageHasAMatrixForEachImageAndSixteenChannels) {
  const Blocks blocks = blocks_of(image(Layout::nchw16c));
  EXPECT_EQ(blocks.segments, images);
  EXPECT_EQ(blocks.groups, 2);
  EXPECT_EQ(blocks.rows, height * width);
  EXPECT_EQ(blocks.padded_channels(), 32);
  EXPECT_EQ(blocks.pixels(), images * height * width);
}

TEST(BlocksOf, RefusesChannelsThatAreApart) {
  EXPECT_THROW(blocks_of(image(Layout::nchw)), Error);
  EXPECT_THROW(blocks_of({.shape = {4, 4}, .layout = Layout::nhwc}), Error);
}

TEST(Place, FindsEveryElementInEachLayout) {
  constexpr std::int64_t pixels = height * width, n = 1, c = 18, p = 7;
  EXPECT_EQ(Place(image(Layout::nchw))(n, c, p), (n * channels + c) * pixels + p);
  EXPECT_EQ(Place(image(Layout::nhwc))(n, c, p), (n * pixels + p) * channels + c);
  EXPECT_EQ(Place(image(Layout::nchw16c))(n, c, p), ((n * 2 + 1) * pixels + p) * 16 + 2);
  EXPECT_EQ(Place(image(Layout::nchw)).stored_channels(), 21);
  EXPECT_EQ(Place(image(Layout::nhwc)).stored_channels(), 21);
  EXPECT_EQ(Place(image(Layout::nchw16c)).stored_channels(), 32);
}

TEST(StoredElements, CountsThePaddingOfBlocks) {
  EXPECT_EQ(stored_elements(image(Layout::nhwc, DataType::bf16)), 2 * 21 * 15);
  EXPECT_EQ(stored_elements(image(Layout::nchw16c, DataType::bf16)), 2 * 32 * 15);
}

TEST(AddParts, AddsAllPartsOfEveryTileAndNothingBehindThem) {
  constexpr std::int64_t parts = 3, tile = 32, count = 5 * tile, stride = count + 16;
  std::vector<float> from(parts * stride, 1000.0F), to(count + 1, -1.0F);
  for (std::int64_t part = 0; part < parts; ++part) {
    for (std::int64_t i = 0; i < count; ++i) {
      from[static_cast<std::size_t>(part * stride + i)] = static_cast<float>(i + 200 * part);
    }
  }
  add_parts(avx2_loops(),
            {.from = from.data(), .parts = parts, .stride = stride, .count = count, .tile = tile},
            to.data());
  for (std::int64_t i = 0; i < count; ++i) {
    EXPECT_EQ(to[static_cast<std::size_t>(i)], static_cast<float>(3 * i + 600)) << i;
  }
  EXPECT_EQ(to.back(), -1.0F);
}

TEST(ChannelsTogether, FollowsTheInputThenTheOutputThenNhwc) {
  const TensorDesc plain = image(Layout::nchw), blocked = image(Layout::nchw16c),
                   last = image(Layout::nhwc);
  EXPECT_EQ(channels_together({.in = {blocked}, .out = {last}}), Layout::nchw16c);
  EXPECT_EQ(channels_together({.in = {last}, .out = {blocked}}), Layout::nhwc);
  EXPECT_EQ(channels_together({.in = {plain}, .out = {blocked}}), Layout::nchw16c);
  EXPECT_EQ(channels_together({.in = {plain}, .out = {plain}}), Layout::nhwc);
}

TEST(OwnKernelSpecs, GiveImagesTheLayoutAndLeaveVectorsPlain) {
  const TensorDesc vector{.shape = {channels}};
  TensorDesc spread = image(Layout::nhwc);
  spread.pitch = 64;
  const Signature request{.in = {spread, vector}, .out = {image(Layout::nchw)}};
  const KernelSpec blocked = in_layout(request, Layout::nchw16c, 100);
  EXPECT_EQ(blocked.in[0], image(Layout::nchw16c));
  EXPECT_EQ(blocked.in[1], vector);
  EXPECT_EQ(blocked.out[0], image(Layout::nchw16c));
  EXPECT_EQ(blocked.workspace, 100U);
  EXPECT_EQ(as_requested(request).in[0], image(Layout::nhwc)) << "without a pitch";
  EXPECT_EQ(as_requested(request).out[0], image(Layout::nchw));
  EXPECT_EQ(like_first_input(request).out[0], image(Layout::nhwc));
}

TEST(IsStreamed, IsForLargeOutputsThatOverwriteNoInput) {
  const TensorDesc large{.shape = {4 << 20}}, small{.shape = {(4 << 20) - 1}};
  std::byte one{}, other{};
  Operands operands;
  std::vector<TensorView> in{{.desc = large, .data = &one}};
  operands.in = in;
  EXPECT_TRUE(is_streamed(operands, {.desc = large, .data = &other}));
  EXPECT_FALSE(is_streamed(operands, {.desc = large, .data = &one}));
  EXPECT_FALSE(is_streamed(operands, {.desc = small, .data = &other}));
}

TEST(SumParts, AddsInTheOrderOfThePartsInDouble) {
  // In f32, adding 1 to 2^24 would have no effect.
  const std::vector<double> parts{0x1p24, 5, 1, 6, 1, 7};
  std::vector<float> sums(2);
  sum_parts(parts.data(), 3, 2, sums.data());
  EXPECT_EQ(sums, (std::vector<float>{0x1p24F + 2, 18}));
}

TEST(ParallelElements, CoversAllStoredElementsOnceFromCacheLines) {
  const TensorDesc desc = image(Layout::nchw16c);
  std::vector<std::atomic<int>> visits(static_cast<std::size_t>(stored_elements(desc)));
  std::atomic<bool> starts_lines = true;
  parallel_elements(desc, [&](std::int64_t first, std::int64_t n) {
    starts_lines = starts_lines && first % 64 == 0;
    for (std::int64_t i = first; i < first + n; ++i) {
      ++visits[static_cast<std::size_t>(i)];
    }
  });
  EXPECT_TRUE(starts_lines);
  for (const std::atomic<int>& count : visits) {
    EXPECT_EQ(count, 1);
  }
}

}  // namespace
}  // namespace cnn::layers::cpu
